//! What the text of a numbered row says: chip, hardware IRQ, trigger, actions.

/// The text of a numbered row taken apart.
///
/// The kernel prints fields that may be empty or hold spaces and separates them by spaces,
/// so this is a **heuristic**: it is right for the forms that `kernel/irq/proc.c` prints
/// while no word of a chip's name looks like a hardware IRQ (`4`, `4-edge`) or a trigger
/// (`Level`, `Edge`), and no action's name holds `, `. Where it matters, ask
/// `/sys/kernel/irq/<irq>/{chip_name,hwirq,type,actions}` (Linux 4.9), which keeps them
/// apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IrqDescription<'a> {
    /// The interrupt controller (`IO-APIC`, `GICv3`, `PCI-MSIX-0000:00:01.0`); `-` and
    /// `None` are the kernel's words for a chip without a name and for no chip.
    pub chip: &'a str,
    /// The number within the controller; `None` for IRQs outside any IRQ domain, as all
    /// are on old kernels.
    pub hwirq: Option<u64>,
    /// `Level` or `Edge` where the kernel prints it (Arm and others), otherwise the
    /// flow handler's name (`edge`, `fasteoi` on x86; `virq` on Xen).
    pub trigger: Option<&'a str>,
    /// The names under which drivers asked for the IRQ: several share it.
    pub actions: Vec<&'a str>,
}

/// Names of flow handlers that kernels without hardware IRQs append to the chip
/// (`IO-APIC-edge`, `xen-dyn-event`).
const OLD_HANDLERS: [&str; 7] = ["edge", "level", "fasteoi", "event", "virq", "pirq", "ipi"];

impl<'a> IrqDescription<'a> {
    /// Takes the text of a numbered row apart.
    pub fn of(text: &'a str) -> Self {
        let text = text.trim();
        let words: Vec<Word> = words(text).collect();
        words
            .iter()
            .skip(1)
            .zip(&words)
            .enumerate()
            .find_map(|(before, (word, previous))| typed(text, &words[..=before], previous, word))
            .or_else(|| untyped(text, &words))
            .unwrap_or_else(|| without_hwirq(text))
    }
}

/// True for a hardware IRQ with or without a flow handler's name: `4`, `4-edge`.
pub(super) fn is_hwirq(word: &[u8]) -> bool {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0
        && match &word[digits..] {
            [] => true,
            [b'-', first, ..] => first.is_ascii_alphabetic(),
            _ => false,
        }
}

/// A word of the text: where it starts, and the word.
type Word<'a> = (usize, &'a str);

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// If the word says the trigger: `4-edge`, `-virq`, or `Level` with or without a hardware
/// IRQ before it.
fn typed<'a>(
    text: &'a str,
    before: &[Word<'a>],
    previous: &Word<'a>,
    word: &Word<'a>,
) -> Option<IrqDescription<'a>> {
    let (start, word) = *word;
    let rest = &text[start + word.len()..];
    if matches!(word, "Level" | "Edge") {
        // A flow handler's name may follow (`Level    -gpio`).
        let handler = rest.trim_start().strip_prefix('-');
        let rest = handler.map_or(rest, |name| {
            name.split_once(' ').map_or("", |(_, actions)| actions)
        });
        let hwirq = previous.1.parse().ok().filter(|_| before.len() > 1);
        let end = if hwirq.is_some() { previous.0 } else { start };
        return Some(described(&text[..end], hwirq, Some(word), rest));
    }
    let (digits, handler) = word.split_once('-')?;
    if !handler.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let hwirq = match digits {
        "" => None,
        digits => Some(digits.parse().ok()?),
    };
    Some(described(&text[..start], hwirq, Some(handler), rest))
}

/// A hardware IRQ and no trigger: a number with a gap of two spaces behind it.
fn untyped<'a>(text: &'a str, words: &[Word<'a>]) -> Option<IrqDescription<'a>> {
    words.iter().skip(1).find_map(|(start, word)| {
        let rest = &text[start + word.len()..];
        let hwirq = word.parse().ok()?;
        (rest.is_empty() || rest.starts_with("  "))
            .then(|| described(&text[..*start], Some(hwirq), None, rest))
    })
}

/// No hardware IRQ: the chip ends at the first gap of two spaces, and may have the flow
/// handler's name appended.
fn without_hwirq(text: &str) -> IrqDescription<'_> {
    let (chip, rest) = text.split_once("  ").unwrap_or((text, ""));
    match chip.rsplit_once('-') {
        Some((chip, handler)) if OLD_HANDLERS.contains(&handler) => {
            described(chip, None, Some(handler), rest)
        }
        _ => described(chip, None, None, rest),
    }
}

fn described<'a>(
    chip: &'a str,
    hwirq: Option<u64>,
    trigger: Option<&'a str>,
    actions: &'a str,
) -> IrqDescription<'a> {
    let actions = actions.trim();
    IrqDescription {
        chip: chip.trim(),
        hwirq,
        trigger,
        actions: match actions {
            "" => Vec::new(),
            actions => actions.split(", ").collect(),
        },
    }
}
