//! The system calls that neither the standard library nor `nix` offers in a form that fits:
//! affinity masks of any size and futexes. All `unsafe` of this crate is here.

use std::io;
use std::mem::size_of_val;
use std::ptr;
use std::sync::atomic::AtomicU32;

use hostfs::CpuSet;
use libc::{c_long, c_ulong, pid_t};

/// CPUs are numbered below this: several times the largest `CONFIG_NR_CPUS` of any
/// architecture (8,192 on x86), so that an absurd id asks for no absurd mask.
pub(crate) const MAX_CPUS: u32 = 1 << 16;

/// Bits of one word of the kernel's masks.
const BITS: u32 = c_ulong::BITS;

/// An affinity mask as the kernel lays it out: native words, lowest CPU first.
pub(crate) struct Mask(Vec<c_ulong>);

impl Mask {
    /// A mask of one CPU, which must be below [`MAX_CPUS`].
    pub(crate) fn of(cpu: u32) -> Self {
        let mut words = vec![0; (cpu / BITS) as usize + 1];
        words[(cpu / BITS) as usize] = 1 << (cpu % BITS);
        Self(words)
    }

    /// Every CPU that a kernel can have.
    pub(crate) fn all() -> Self {
        Self(vec![c_ulong::MAX; (MAX_CPUS / BITS) as usize])
    }

    /// Puts this mask on the calling thread. The kernel ignores CPUs that it doesn't know
    /// and those outside the thread's cpuset.
    ///
    /// # Errors
    ///
    /// EINVAL when no CPU is left after that.
    pub(crate) fn set(&self) -> io::Result<()> {
        let bytes = size_of_val(self.0.as_slice());
        // SAFETY: the kernel reads `bytes` bytes from the vector, which is that long.
        let answer = unsafe { libc::sched_setaffinity(0, bytes, self.0.as_ptr().cast()) };
        if answer == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// The CPUs on which the thread `tid` (0: the calling thread) may run and that are active.
pub(crate) fn affinity(tid: pid_t) -> io::Result<CpuSet> {
    let mut words: Vec<c_ulong> = vec![0; (1024 / BITS) as usize];
    loop {
        let bytes = size_of_val(words.as_slice());
        // SAFETY: the kernel writes at most `bytes` bytes to the vector, which is that long,
        // and any bits are valid words.
        let answer = unsafe { libc::sched_getaffinity(tid, bytes, words.as_mut_ptr().cast()) };
        if answer == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        // EINVAL: the kernel has more CPUs than that.
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() as u32 * BITS >= MAX_CPUS {
            return Err(error);
        }
        words = vec![0; words.len() * 2];
    }
    let set = |word: usize, bit: u32| words[word] & (1 << bit) != 0;
    Ok((0..words.len())
        .flat_map(|word| (0..BITS).map(move |bit| (word, bit)))
        .filter(|&(word, bit)| set(word, bit))
        .map(|(word, bit)| word as u32 * BITS + bit)
        .collect())
}

/// Sleeps until the word is woken, unless it no longer holds `expected`. The word must be
/// looked at again afterwards, since a wakeup may be a stray one.
#[inline]
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32) -> io::Result<()> {
    let forever = ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the reference; the kernel only reads it, atomically;
    // a null timeout is allowed.
    let answer: c_long = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            forever,
        )
    };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // The word changed before the kernel looked, or a signal was handled.
        Some(libc::EAGAIN | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

/// Wakes the thread that sleeps on the word, if there is one.
#[inline]
pub(crate) fn futex_wake(word: &AtomicU32) -> io::Result<()> {
    // SAFETY: the kernel uses the address as a key only and the word lives as long as the
    // reference.
    let answer: c_long = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_bit_of_its_cpu() {
        assert_eq!(Mask::of(0).0, [1]);
        assert_eq!(Mask::of(BITS - 1).0, [1 << (BITS - 1)]);
        let far = Mask::of(5000).0;
        assert_eq!(far.len() as u32, 5000 / BITS + 1);
        assert_eq!(far.last(), Some(&(1 << (5000 % BITS))));
        assert!(far[..far.len() - 1].iter().all(|&word| word == 0));
    }

    #[test]
    fn a_mask_without_any_cpu_of_this_machine_is_refused() {
        let error = Mask::of(MAX_CPUS - 1).set().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_changed_word_is_not_slept_on() {
        let word = AtomicU32::new(7);
        futex_wait(&word, 6).unwrap();
        futex_wake(&word).unwrap();
    }
}
