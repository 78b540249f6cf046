//! The machine that variants are applied to, with guards that put it back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cpuidle::{CpuIdle, StateSelection};
use hostfs::{Change, HostFs, Restore, Topology};
use irqaffinity::AffinityGuard;
use irqaffinity::irqbalance::Irqbalance;

use crate::{Error, Factor, LeftOut, Variant};

/// How long a wait may go on after the experiment was told to stop.
const PATIENCE: Duration = Duration::from_millis(100);

const CURRENT_GOVERNOR: &str = "sys/devices/system/cpu/cpuidle/current_governor";

/// irqbalance's own default between two looks.
const IRQBALANCE_INTERVAL: u32 = 10;

/// The machine, and the record of what is changed on it.
#[derive(Debug, Clone)]
pub struct Host {
    fs: HostFs,
    record: Restore,
}

impl Host {
    /// The machine below the record's root.
    pub fn new(record: Restore) -> Self {
        Self {
            fs: record.fs().clone(),
            record,
        }
    }

    /// The root that is read.
    pub fn fs(&self) -> &HostFs {
        &self.fs
    }

    /// The record of what is changed.
    pub fn record(&self) -> &Restore {
        &self.record
    }

    /// Whether a variant can be applied here: `None` if it can, otherwise why not and what
    /// would help. Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a governor or an idle state that this machine does not have.
    pub fn check(&self, variant: &Variant) -> Result<Option<LeftOut>, Error> {
        for factor in &variant.factors {
            if let Some(why) = self.obstacle(factor)? {
                return Ok(Some(LeftOut::new(
                    format!("variant {}", variant.name),
                    format!("{factor}: {why}"),
                )));
            }
        }
        Ok(None)
    }

    fn obstacle(&self, factor: &Factor) -> Result<Option<String>, Error> {
        if let Err(error) = self.fs.require_this_machine("changing a setting") {
            return Ok(Some(error.to_string()));
        }
        match factor {
            Factor::IrqbalanceOff => Ok(self.obstacle_to_pausing()),
            Factor::IrqbalanceOn { .. } => Ok(self
                .obstacle_to_pausing()
                .or_else(|| self.obstacle_to_irqbalance())),
            Factor::Governor(name) => self.obstacle_to_governor(factor, name),
            Factor::IdleOff(state) => self.obstacle_to_idle_off(factor, state),
        }
    }

    /// A daemon that runs can only be paused by its user or root.
    fn obstacle_to_pausing(&self) -> Option<String> {
        match Irqbalance::find(&self.fs) {
            Ok(running) if running.is_empty() => None,
            Ok(_) => Irqbalance::check_privilege().err().map(|e| e.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn obstacle_to_irqbalance(&self) -> Option<String> {
        if let Err(error) = Irqbalance::check_available(&self.fs) {
            return Some(error.to_string());
        }
        match Topology::read(&self.fs) {
            Ok(topology) if topology.online.len() < 2 => {
                Some("with one CPU there is nothing to balance".into())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    fn obstacle_to_governor(&self, factor: &Factor, name: &str) -> Result<Option<String>, Error> {
        let idle = match CpuIdle::open(&self.fs) {
            Ok(idle) => idle,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let there = idle.available_governors().unwrap_or_default();
        if !there.is_empty() && there.iter().all(|governor| governor != name) {
            return Err(Error::unknown(factor, there.to_vec()));
        }
        let file = self.fs.check_writable(CURRENT_GOVERNOR);
        Ok(file.err().map(|error| error.to_string()))
    }

    fn obstacle_to_idle_off(&self, factor: &Factor, state: &str) -> Result<Option<String>, Error> {
        let idle = match CpuIdle::open(&self.fs) {
            Ok(idle) => idle,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let mut there: Vec<String> = Vec::new();
        for cpu in idle.cpus() {
            for found in &cpu.states {
                if found.name == state {
                    let (cpu, index) = (cpu.cpu, found.index);
                    let file = self.fs.check_writable(format!(
                        "sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/disable"
                    ));
                    return Ok(file.err().map(|error| error.to_string()));
                }
                if !there.contains(&found.name) {
                    there.push(found.name.clone());
                }
            }
        }
        Err(Error::unknown(factor, there))
    }

    /// Applies a variant's factors one after the other. When one fails, those before it
    /// are undone.
    ///
    /// Where irqbalance is to run, this waits until it has moved an interrupt, or had twice
    /// its interval for it, or until `stop` is set.
    ///
    /// # Errors
    ///
    /// [`Error::Apply`] with the factor and what hindered it.
    pub fn apply(&self, variant: &Variant, stop: &AtomicBool) -> Result<Applied, Error> {
        let mut applied = Applied {
            fs: self.fs.clone(),
            parts: Vec::new(),
        };
        for factor in &variant.factors {
            self.apply_factor(factor, stop, &mut applied.parts)
                .map_err(|reason| Error::Apply {
                    factor: factor.clone(),
                    reason,
                })?;
        }
        Ok(applied)
    }

    fn apply_factor(
        &self,
        factor: &Factor,
        stop: &AtomicBool,
        parts: &mut Vec<Part>,
    ) -> Result<(), String> {
        match factor {
            Factor::IrqbalanceOff => {
                self.silence_irqbalance(factor, parts)?;
                parts.push(Part::no_other(factor, None));
                Ok(())
            }
            Factor::IrqbalanceOn {
                powerthresh,
                interval,
            } => {
                self.silence_irqbalance(factor, parts)?;
                let child = self.start_irqbalance(*powerthresh, *interval, stop)?;
                parts.push(Part::no_other(factor, Some(child.process().pid)));
                parts.push(Part {
                    factor: factor.clone(),
                    kind: Kind::Irqbalance(Box::new(child)),
                });
                Ok(())
            }
            Factor::Governor(name) => {
                let idle = CpuIdle::open(&self.fs).map_err(text)?;
                let change = idle.set_governor(&self.record, name).map_err(text)?;
                parts.push(Part {
                    factor: factor.clone(),
                    kind: Kind::Governor {
                        name: name.clone(),
                        _change: change,
                    },
                });
                Ok(())
            }
            Factor::IdleOff(state) => {
                let idle = CpuIdle::open(&self.fs).map_err(text)?;
                let state = StateSelection::Name(state.clone());
                let changes = idle
                    .disable_state(&self.record, &state, &idle.cpu_set())
                    .map_err(text)?;
                parts.extend(changes.into_iter().map(|change| Part {
                    factor: factor.clone(),
                    kind: Kind::Setting(change),
                }));
                Ok(())
            }
        }
    }

    /// Pauses running daemons and undoes what they moved.
    fn silence_irqbalance(&self, factor: &Factor, parts: &mut Vec<Part>) -> Result<(), String> {
        let paused = Irqbalance::pause(&self.record).map_err(text)?;
        let found_running = !paused.is_empty();
        parts.extend(paused.into_iter().map(|pause| Part {
            factor: factor.clone(),
            kind: Kind::Paused { _pause: pause },
        }));
        if found_running {
            let reset = Irqbalance::reset_to_default(&self.record).map_err(text)?;
            parts.extend(reset.into_iter().map(|guard| Part {
                factor: factor.clone(),
                kind: Kind::Reset { _affinity: guard },
            }));
        }
        Ok(())
    }

    fn start_irqbalance(
        &self,
        powerthresh: Option<u32>,
        interval: Option<u32>,
        stop: &AtomicBool,
    ) -> Result<Irqbalance, String> {
        let mut builder = Irqbalance::builder();
        if let Some(n) = powerthresh {
            builder = builder.powerthresh(n);
        }
        if let Some(s) = interval {
            builder = builder.interval(s);
        }
        let mut child = builder.start(&self.record).map_err(text)?;
        let seconds = u64::from(interval.unwrap_or(IRQBALANCE_INTERVAL));
        let end = Instant::now() + Duration::from_secs(2 * seconds + 1);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            if child.wait_until_acted(PATIENCE).map_err(text)? {
                break;
            }
        }
        Ok(child)
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A variant in place; dropping it puts back what was found, the latest change first.
#[derive(Debug)]
#[must_use = "dropping it puts back what was found"]
pub struct Applied {
    fs: HostFs,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    factor: Factor,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A file that must go on holding what was written.
    Setting(Change),
    /// The governor that must go on; it may have been the one that was found.
    Governor {
        name: String,
        _change: Option<Change>,
    },
    /// No irqbalance runs but ours, if any.
    NoOther { ours: Option<u32> },
    /// A daemon that was found running.
    Paused { _pause: Change },
    /// An interrupt that such a daemon had moved.
    Reset { _affinity: AffinityGuard },
    /// One of our own.
    Irqbalance(Box<Irqbalance>),
}

impl Part {
    fn no_other(factor: &Factor, ours: Option<u32>) -> Self {
        Self {
            factor: factor.clone(),
            kind: Kind::NoOther { ours },
        }
    }
}

impl Applied {
    /// Whether everything that was applied still holds.
    ///
    /// # Errors
    ///
    /// [`Error::NotInPlace`] with the factor that does not hold, and what was found.
    pub fn check(&mut self) -> Result<(), Error> {
        for part in &mut self.parts {
            let problem = match &mut part.kind {
                Kind::Setting(change) => differs(&self.fs, change.path(), change.now()),
                Kind::Governor { name, .. } => differs(&self.fs, CURRENT_GOVERNOR.as_ref(), name),
                Kind::Irqbalance(child) => child.check().err().map(|error| error.to_string()),
                Kind::NoOther { ours } => other_irqbalance(&self.fs, *ours),
                Kind::Paused { .. } | Kind::Reset { .. } => None,
            };
            if let Some(reason) = problem {
                return Err(Error::NotInPlace {
                    factor: part.factor.clone(),
                    reason,
                });
            }
        }
        Ok(())
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        while self.parts.pop().is_some() {}
    }
}

/// An irqbalance that runs though it should not.
fn other_irqbalance(fs: &HostFs, ours: Option<u32>) -> Option<String> {
    match Irqbalance::find(fs) {
        Ok(running) => running
            .iter()
            .find(|process| Some(process.pid) != ours && !process.is_stopped(fs))
            .map(|process| format!("another irqbalance runs, process {}", process.pid)),
        Err(error) => Some(error.to_string()),
    }
}

/// What a file holds instead of what it should.
fn differs(fs: &HostFs, path: &Path, should: &str) -> Option<String> {
    match fs.read_text(path) {
        Ok(now) if now == should => None,
        Ok(now) => Some(format!(
            "{} holds {now:?} instead of {should:?}: something else sets it too",
            path.display()
        )),
        Err(error) => Some(error.to_string()),
    }
}
