//! The times, amounts and allowances that a ledger works by.

use super::{LedgerTime, ResetZone};

/// The times and amounts of the protocol. One set is shared by a ledger and its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long a lease lives after its last extension, ms.
    pub lease_ms: u64,
    /// W: how long after it was first sent a reserve may still be executed, ms.
    pub admission_ms: u64,
    /// U: how long after its deadline an unknown settle is still taken, ms.
    pub unreserved_ms: u64,
    /// L: how long Settled and Expired ids are remembered, ms. More than
    /// max(`admission_ms`, `lease_ms` + `unreserved_ms`).
    pub tombstone_ms: u64,
    /// The credit step: the most that one reserve or extend grants, bytes.
    pub credit_bytes: u64,
    /// N: due leases swept inside one reserve.
    pub sweep_in_reserve: usize,
    /// Due leases swept by one step of the sweeper, of quota and of audit.
    pub sweep_batch: usize,
    /// Entries kept per project and day before further ones are rolled up.
    pub max_entries: u64,
    /// Days that entries and totals are kept.
    pub retention_days: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease_ms: 30_000,
            admission_ms: 10_000,
            unreserved_ms: 240_000,
            tombstone_ms: 300_000,
            credit_bytes: 8 << 20,
            sweep_in_reserve: 16,
            sweep_batch: 64,
            max_entries: 100_000,
            retention_days: 35,
        }
    }
}

impl Rules {
    /// The days that can be asked for: today and the retention.
    #[must_use]
    pub const fn kept_days(&self) -> u32 {
        self.retention_days.saturating_add(1)
    }

    /// Whether the numbers can work together.
    ///
    /// # Errors
    /// The sentence names the rule that is broken.
    pub fn check(&self) -> Result<(), &'static str> {
        let positive = [self.lease_ms, self.credit_bytes, self.max_entries, u64::from(self.retention_days)];
        if positive.contains(&0) || self.sweep_in_reserve == 0 || self.sweep_batch == 0 {
            return Err("the lease, the credit step, the sweeps, the entries and the retention are at least 1");
        }
        let remembered_for = self.admission_ms.max(self.lease_ms.saturating_add(self.unreserved_ms));
        if self.tombstone_ms <= remembered_for {
            return Err("ids are remembered longer than max(admission, lease + unreserved)");
        }
        Ok(())
    }
}

/// What a project may download in a day. [`Unlimited`](Allowance::Unlimited) and 0 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// No bound; reads are still reserved, charged and audited.
    Unlimited,
    /// At most this many bytes, up to [`MAX_AMOUNT`](super::MAX_AMOUNT).
    Bytes(u64),
}

impl Allowance {
    /// Whether `total` bytes are within the allowance.
    #[must_use]
    pub const fn covers(self, total: u64) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Bytes(limit) => total <= limit,
        }
    }

    /// The bound in bytes, if there is one.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Bytes(limit) => Some(limit),
        }
    }
}

/// The share of an allowance, in percent, that people are warned at: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarnAt(u8);

impl Default for WarnAt {
    fn default() -> Self {
        Self(80)
    }
}

impl WarnAt {
    /// `None` if it is not from 1 to 100.
    #[must_use]
    pub const fn new(percent: u8) -> Option<Self> {
        if percent >= 1 && percent <= 100 { Some(Self(percent)) } else { None }
    }

    /// The share in percent.
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.0
    }

    /// Whether `used` bytes are so much of `allowance`. Nothing used is never much, and no amount is
    /// much of an unlimited allowance. Open reservations do not count: most of a file that is read
    /// in windows is given back.
    #[must_use]
    pub fn reached(self, allowance: Allowance, used: u64) -> bool {
        let of = |limit: u64| u128::from(used) * 100 >= u128::from(limit) * u128::from(self.0);
        used > 0 && allowance.bytes().is_some_and(of)
    }
}

/// An allowance set for one project, instead of the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The allowance.
    pub allowance: Allowance,
    /// When the default is in force again; `None`: not until the override is cleared.
    pub until: Option<LedgerTime>,
    /// Who set it: a key id.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Override {
    /// Whether the override is in force at `now`.
    #[must_use]
    pub fn in_force(&self, now: LedgerTime) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// What a ledger is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The times and amounts of the protocol.
    pub rules: Rules,
    /// The allowance of a project without an [`Override`].
    pub allowance: Allowance,
    /// Whose midnight begins a new day.
    pub zone: ResetZone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_due_from_its_share_on() {
        let at = |percent| WarnAt::new(percent).expect("1 to 100");
        for (percent, allowance, used, reached) in [
            (80, Allowance::Bytes(1000), 799, false),
            (80, Allowance::Bytes(1000), 800, true),
            (80, Allowance::Bytes(1000), 5000, true),
            (1, Allowance::Bytes(99), 1, true),
            (1, Allowance::Bytes(101), 1, false),
            (100, Allowance::Bytes(super::super::MAX_AMOUNT), super::super::MAX_AMOUNT, true),
            (80, Allowance::Bytes(0), 0, false),
            (80, Allowance::Bytes(0), 1, true),
            (1, Allowance::Unlimited, u64::MAX, false),
        ] {
            assert_eq!(at(percent).reached(allowance, used), reached, "{percent} {allowance:?} {used}");
        }
        assert_eq!((WarnAt::new(0), WarnAt::new(101), WarnAt::default().percent()), (None, None, 80));
    }

    #[test]
    fn the_default_rules_hold_together_and_broken_ones_do_not() {
        assert_eq!(Rules::default().check(), Ok(()));
        let rules = Rules::default();
        for broken in [
            Rules { lease_ms: 0, ..rules.clone() },
            Rules { credit_bytes: 0, ..rules.clone() },
            Rules { sweep_in_reserve: 0, ..rules.clone() },
            Rules { sweep_batch: 0, ..rules.clone() },
            Rules { max_entries: 0, ..rules.clone() },
            Rules { retention_days: 0, ..rules.clone() },
            Rules { tombstone_ms: rules.lease_ms + rules.unreserved_ms, ..rules.clone() },
            Rules { admission_ms: rules.tombstone_ms, ..rules.clone() },
        ] {
            assert!(broken.check().is_err(), "{broken:?}");
        }
    }
}
