//! From bytes to the table, in one pass.

use std::path::Path;

use super::description::is_hwirq;
use super::{Finding, Interrupts, Span, StoredBare, StoredGlobal, StoredIrq, StoredNamed};
use crate::{Error, Result};

/// The largest CPU number that a header may name: far over any kernel's, so that a hostile
/// text can't make a set of CPUs huge.
const MAX_CPU: u64 = (1 << 20) - 1;

/// The rows with one count on the machines that print such (`arch/*/kernel/irq.c`); asked
/// for only where the form of the row doesn't tell.
const GLOBAL_NAMES: [&str; 3] = ["ERR", "MIS", "BAD"];

impl Interrupts {
    /// Replaces the table by what the text holds, and keeps its memory. After an error the
    /// table is empty.
    pub(super) fn parse_from(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.clear();
        let (header, rest) = line(bytes);
        if !self.read_header(header) {
            self.clear();
            return Err(Error::malformed(
                path,
                "a header of CPUs",
                &String::from_utf8_lossy(&header[..header.len().min(400)]),
            ));
        }
        let mut rest = rest;
        while !rest.is_empty() {
            rest = self.read_row(rest);
        }
        self.sort();
        Ok(())
    }

    fn clear(&mut self) {
        self.cpus.clear();
        self.counts.clear();
        self.text.clear();
        self.irqs.clear();
        self.others.clear();
        self.globals.clear();
        self.bare.clear();
        self.findings.clear();
    }

    /// False if the line isn't `CPU<n> CPU<m> ...`, ascending as the kernel prints them.
    fn read_header(&mut self, header: &[u8]) -> bool {
        for word in header.split(u8::is_ascii_whitespace) {
            if word.is_empty() {
                continue;
            }
            let Some(Number { value, end }) = word.strip_prefix(b"CPU").and_then(number) else {
                return false;
            };
            if value > MAX_CPU || end != word.len() - "CPU".len() {
                return false;
            }
            self.cpus.push(value as u32);
        }
        let ascending = self.cpus.is_sorted_by(|a, b| a < b);
        ascending && !self.cpus.is_empty()
    }

    /// Takes one row from the bytes and returns the bytes after it.
    fn read_row<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(colon) = bytes.iter().position(|b| matches!(b, b':' | b'\n')) else {
            self.not_a_row(bytes);
            return &[];
        };
        let label = bytes[..colon].trim_ascii();
        if label.is_empty() || bytes[colon] == b'\n' {
            let (line, rest) = line(bytes);
            self.not_a_row(line);
            return rest;
        }

        let first = self.counts.len();
        let mut after = &bytes[colon + 1..];
        let mut last = 0;
        let mut fits = true;
        while self.counts.len() - first < self.cpus.len() {
            after = skip_blanks(after);
            let Some(Number { value, end }) = number(after) else {
                break;
            };
            if !after.get(end).is_none_or(u8::is_ascii_whitespace) {
                break;
            }
            after = &after[end..];
            last = value;
            fits &= value <= u64::from(u32::MAX);
            // What does not fit is never shown.
            self.counts.push(value as u32);
        }
        let (text, rest) = line(after);
        let text = text.trim_ascii();

        let cut = text.is_empty() && bytes.last() != Some(&b'\n') && rest.is_empty();
        let is_irq = label.iter().all(u8::is_ascii_digit);
        if cut {
            self.leave_out(first, label, |row| Finding::Cut { row });
        } else if is_irq {
            self.take_irq(label, first, fits, text);
        } else {
            self.take_named(label, first, fits, last, text);
        }
        rest
    }

    fn take_irq(&mut self, label: &[u8], first: usize, fits: bool, text: &[u8]) {
        if let Some(finding) = self.wrong_counts(label, first, fits, is_one_count_more(text)) {
            self.leave_out(first, label, |_| finding);
            return;
        }
        match number(label).and_then(|number| u32::try_from(number.value).ok()) {
            None => {
                self.counts.truncate(first);
                self.not_a_row(label);
            }
            Some(irq) => {
                let text = self.keep(text);
                self.irqs.push(StoredIrq {
                    irq,
                    counts: first,
                    text,
                });
            }
        }
    }

    fn take_named(&mut self, label: &[u8], first: usize, fits: bool, last: u64, text: &[u8]) {
        let found = self.counts.len() - first;
        let one_for_all = found == 1
            && text.is_empty()
            && (self.cpus.len() > 1
                || GLOBAL_NAMES
                    .iter()
                    .any(|name| label.eq_ignore_ascii_case(name.as_bytes())));
        if found == 0 {
            let (name, text) = (self.keep(label), self.keep(text));
            self.bare.push(StoredBare { name, text });
        } else if one_for_all {
            self.counts.truncate(first);
            let name = self.keep(label);
            self.globals.push(StoredGlobal { name, count: last });
        } else if let Some(finding) =
            self.wrong_counts(label, first, fits, number_word(text).is_some())
        {
            self.leave_out(first, label, |_| finding);
        } else {
            let (name, text) = (self.keep(label), self.keep(text));
            self.others.push(StoredNamed {
                name,
                counts: first,
                text,
            });
        }
    }

    /// Why the counts of a row can't be used.
    fn wrong_counts(&self, label: &[u8], first: usize, fits: bool, more: bool) -> Option<Finding> {
        let row = || String::from_utf8_lossy(label).into_owned();
        let (counts, columns) = (self.counts.len() - first, self.cpus.len());
        if counts < columns {
            Some(Finding::FewerCounts {
                row: row(),
                counts,
                columns,
            })
        } else if more {
            Some(Finding::MoreCounts {
                row: row(),
                columns,
            })
        } else if !fits {
            Some(Finding::CountTooLarge { row: row() })
        } else {
            None
        }
    }

    fn leave_out(&mut self, first: usize, label: &[u8], finding: impl FnOnce(String) -> Finding) {
        self.counts.truncate(first);
        self.findings
            .push(finding(String::from_utf8_lossy(label).into_owned()));
    }

    fn not_a_row(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if !line.is_empty() {
            let line = String::from_utf8_lossy(&line[..line.len().min(400)]);
            self.findings.push(Finding::NotARow {
                line: line.chars().take(80).collect(),
            });
        }
    }

    pub(super) fn keep(&mut self, text: &[u8]) -> Span {
        let start = self.text.len();
        match std::str::from_utf8(text) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&String::from_utf8_lossy(text)),
        }
        (start, self.text.len())
    }

    /// Ascending IRQs, each once. The kernel prints them so; other texts may not.
    pub(super) fn sort(&mut self) {
        if self.irqs.is_sorted_by(|a, b| a.irq < b.irq) {
            return;
        }
        self.irqs.sort_by_key(|row| row.irq);
        let findings = &mut self.findings;
        self.irqs.dedup_by(|later, first| {
            let repeated = later.irq == first.irq;
            if repeated {
                findings.push(Finding::Repeated {
                    row: later.irq.to_string(),
                });
            }
            repeated
        });
    }
}

/// True if the text of a numbered row begins with one more count: a number before a word
/// that isn't a hardware IRQ. A chip whose name is a number is followed by one.
fn is_one_count_more(text: &[u8]) -> bool {
    number_word(text).is_some_and(|end| {
        let next = skip_blanks(&text[end..]);
        let next = next.split(u8::is_ascii_whitespace).next();
        !next.is_some_and(is_hwirq)
    })
}

/// Where the word that the text begins with ends, if it is a number.
fn number_word(text: &[u8]) -> Option<usize> {
    let end = number(text)?.end;
    text.get(end)
        .is_none_or(u8::is_ascii_whitespace)
        .then_some(end)
}

struct Number {
    /// The largest `u64` if it is larger than that.
    value: u64,
    end: usize,
}

/// The decimal number that the bytes begin with.
fn number(bytes: &[u8]) -> Option<Number> {
    let mut value = 0u64;
    let mut end = 0;
    while let Some(digit) = bytes.get(end).filter(|b| b.is_ascii_digit()) {
        value = value
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'));
        end += 1;
    }
    (end > 0).then_some(Number { value, end })
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().position(|b| !matches!(b, b' ' | b'\t'));
    &bytes[blanks.unwrap_or(bytes.len())..]
}

/// The first line without its end, and what follows.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|b| *b == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}
