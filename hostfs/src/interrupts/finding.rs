//! What a table holds that is no row.

use std::fmt;

/// A line of the table that was left out, or the table's end, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Finding {
    /// A row with fewer counts than there are columns: which CPUs they belong to is
    /// unknown. A CPU went offline while the table was being read, or the text is cut.
    FewerCounts {
        /// The row's number or name.
        row: String,
        /// How many counts it has.
        counts: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A row with more counts than there are columns: a CPU came online while the table
    /// was being read.
    MoreCounts {
        /// The row's number or name.
        row: String,
        /// How many columns there are.
        columns: usize,
    },
    /// A row with a count over 2^32 - 1, which no kernel prints.
    CountTooLarge {
        /// The row's number or name.
        row: String,
    },
    /// An IRQ that was there already.
    Repeated {
        /// The row's number.
        row: String,
    },
    /// The last row has no end of line and ends in a count, which may be cut.
    Cut {
        /// The row's number or name.
        row: String,
    },
    /// A line that begins with neither a number nor a name and a colon.
    NotARow {
        /// The line's first 80 characters.
        line: String,
    },
}

impl Finding {
    /// The number or name of the row that was left out.
    pub fn row(&self) -> Option<&str> {
        match self {
            Finding::FewerCounts { row, .. }
            | Finding::MoreCounts { row, .. }
            | Finding::CountTooLarge { row }
            | Finding::Repeated { row }
            | Finding::Cut { row } => Some(row),
            Finding::NotARow { .. } => None,
        }
    }

    /// True where a CPU that came or went during the reading may be the reason, so that
    /// another reading may do better.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Finding::FewerCounts { .. } | Finding::MoreCounts { .. }
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::FewerCounts {
                row,
                counts,
                columns,
            } => write!(
                f,
                "row {row} has {counts} counts for {columns} CPUs: cut, or a CPU went \
                 offline during the reading"
            ),
            Finding::MoreCounts { row, columns } => write!(
                f,
                "row {row} has more counts than the {columns} CPUs: one came online during \
                 the reading"
            ),
            Finding::CountTooLarge { row } => {
                write!(f, "row {row} has a count that 32 bits can't hold")
            }
            Finding::Repeated { row } => write!(f, "row {row} is there twice"),
            Finding::Cut { row } => write!(f, "row {row} is the last and may be cut"),
            Finding::NotARow { line } => write!(f, "not a row: {line:?}"),
        }
    }
}
