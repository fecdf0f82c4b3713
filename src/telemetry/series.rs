//! A family of series of which the first few that are counted are found without hashing their labels.

use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// How many are found without hashing: as many as the labels have values, where there are few.
const FEW: usize = 8;

/// A [`Family`] for labels with few values.
#[derive(Debug)]
pub struct Series<L, M, C = fn() -> M> {
    family: Family<L, M, C>,
    first: Arc<[OnceLock<(L, M)>; FEW]>,
}

impl<L: Clone + Eq + Hash, M: Clone, C: MetricConstructor<M>> Series<L, M, C> {
    /// Does something with the series of these labels, which begins if it is not there yet.
    pub fn with<T>(&self, labels: &L, f: impl FnOnce(&M) -> T) -> T {
        for place in self.first.iter() {
            let (known, series) = place.get_or_init(|| (labels.clone(), self.family.get_or_create_owned(labels)));
            if known == labels {
                return f(series);
            }
        }
        f(&self.family.get_or_create(labels))
    }
}

impl<L: Clone + Eq + Hash, M, C> From<Family<L, M, C>> for Series<L, M, C> {
    fn from(family: Family<L, M, C>) -> Self {
        Self { family, first: Arc::new([const { OnceLock::new() }; FEW]) }
    }
}

impl<L: Clone + Eq + Hash, M: Default> Default for Series<L, M> {
    fn default() -> Self {
        Family::new_with_constructor(M::default as fn() -> M).into()
    }
}

impl<L, M, C: Clone> Clone for Series<L, M, C> {
    fn clone(&self) -> Self {
        Self { family: self.family.clone(), first: Arc::clone(&self.first) }
    }
}

impl<L, M, C> EncodeMetric for Series<L, M, C>
where
    L: Clone + Hash + Eq + EncodeLabelSet,
    M: EncodeMetric + TypedMetric,
    C: MetricConstructor<M>,
{
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.family.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.family.is_empty()
    }
}

impl<L, M: TypedMetric, C> TypedMetric for Series<L, M, C> {
    const TYPE: MetricType = M::TYPE;
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn each_series_is_counted_apart_be_it_among_the_first_or_not() {
        let series = Series::<usize, Counter>::default();
        for round in 0..3 {
            for n in 0..3 * FEW {
                assert_eq!(series.with(&n, Counter::inc), round, "{n}");
            }
        }
        for n in 0..3 * FEW {
            assert_eq!((series.with(&n, Counter::get), series.family.get_or_create(&n).get()), (3, 3), "{n}");
        }
    }
}
