//! Counters, gauges and histograms, with a description of each.

use std::{
    array,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::{Arc, atomic::AtomicU64},
};

use prometheus_client::{
    encoding::{EncodeLabelValue, LabelValueEncoder},
    metrics::{
        counter,
        family::{Family, MetricConstructor},
        gauge, histogram,
    },
    registry::{Metric, Registry},
};

/// A number that only grows.
pub type Counter = counter::Counter;
/// A counter whose value is read from elsewhere.
pub(crate) type ReadCounter = counter::Counter<f64, AtomicU64>;
/// A number that may also shrink.
pub type Gauge = gauge::Gauge<f64, AtomicU64>;
/// The distribution of a quantity.
pub type Histogram = histogram::Histogram;
/// A counter for each combination of `N` label values.
pub type Counters<const N: usize> = Labelled<Counter, N>;
/// A gauge for each combination of `N` label values.
pub type Gauges<const N: usize> = Labelled<Gauge, N>;
/// A histogram for each combination of `N` label values.
pub type Histograms<const N: usize> = Labelled<Histogram, N>;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What is known of a metric.
#[derive(Debug)]
pub struct Description {
    /// The part of the catalogue that it belongs to.
    pub section: &'static str,
    /// The name under which Prometheus stores it. A histogram's series end in `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    pub kind: Kind,
    pub labels: Vec<&'static str>,
    pub help: String,
    /// What an operator does about it.
    pub advice: Option<&'static str>,
}

/// One value of a label.
#[derive(Debug, Clone)]
pub enum Value {
    Text(&'static str),
    Shared(Arc<str>),
    Number(u16),
}

impl Value {
    /// The text, or the number.
    fn key(&self) -> Result<&str, u16> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Shared(text) => Ok(text),
            Self::Number(number) => Err(*number),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number)
    }
}

impl EncodeLabelValue for Value {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        match self.key() {
            Ok(text) => text.encode(encoder),
            Err(number) => number.encode(encoder),
        }
    }
}

/// Creates the instrument of a new combination of label values.
#[derive(Debug, Clone, Copy)]
pub struct Create {
    buckets: &'static [f64],
}

impl MetricConstructor<Counter> for Create {
    fn new_metric(&self) -> Counter {
        Counter::default()
    }
}

impl MetricConstructor<Gauge> for Create {
    fn new_metric(&self) -> Gauge {
        Gauge::default()
    }
}

impl MetricConstructor<Histogram> for Create {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.buckets.iter().copied())
    }
}

/// An instrument for each combination of `N` label values.
#[derive(Debug, Clone)]
pub struct Labelled<M, const N: usize> {
    names: [&'static str; N],
    family: Family<[(&'static str, Value); N], M, Create>,
}

impl<M, const N: usize> Labelled<M, N>
where
    Create: MetricConstructor<M>,
{
    /// Returns the instrument of these values, in the order in which the catalogue names the labels. Only a new combination
    /// allocates. What is returned must be dropped before the next call.
    pub fn with<V: Into<Value> + Clone>(&self, values: [V; N]) -> impl Deref<Target = M> + '_ {
        let mut values = values.map(V::into).into_iter();
        let none = || Value::Text("");
        self.family.get_or_create(&array::from_fn(|place| (self.names[place], values.next().unwrap_or_else(none))))
    }

    /// Removes all combinations, before those that exist now are set.
    pub fn clear(&self) {
        self.family.clear();
    }
}

/// What the catalogue consists of.
pub(crate) trait Instrument: Metric + Clone {
    const KIND: Kind;

    fn create(labels: &[&'static str], buckets: &'static [f64]) -> Self;
}

impl Instrument for Counter {
    const KIND: Kind = Kind::Counter;

    fn create(_: &[&'static str], _: &'static [f64]) -> Self {
        Self::default()
    }
}

impl Instrument for ReadCounter {
    const KIND: Kind = Kind::Counter;

    fn create(_: &[&'static str], _: &'static [f64]) -> Self {
        Self::default()
    }
}

impl Instrument for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn create(_: &[&'static str], _: &'static [f64]) -> Self {
        Self::default()
    }
}

impl Instrument for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn create(_: &[&'static str], buckets: &'static [f64]) -> Self {
        Self::new(buckets.iter().copied())
    }
}

impl<M: Instrument, const N: usize> Instrument for Labelled<M, N>
where
    Create: MetricConstructor<M>,
    Family<[(&'static str, Value); N], M, Create>: Metric,
    Self: Metric,
{
    const KIND: Kind = M::KIND;

    fn create(labels: &[&'static str], buckets: &'static [f64]) -> Self {
        let names = array::from_fn(|place| labels.get(place).copied().unwrap_or_default());
        Self { names, family: Family::new_with_constructor(Create { buckets }) }
    }
}

impl<M, const N: usize> prometheus_client::encoding::EncodeMetric for Labelled<M, N>
where
    Family<[(&'static str, Value); N], M, Create>: prometheus_client::encoding::EncodeMetric,
{
    fn encode(&self, encoder: prometheus_client::encoding::MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.family.encode(encoder)
    }

    fn metric_type(&self) -> prometheus_client::metrics::MetricType {
        self.family.metric_type()
    }

    fn is_empty(&self) -> bool {
        self.family.is_empty()
    }
}

/// Creates, registers and describes instruments.
#[derive(Default)]
pub(crate) struct Registrar {
    pub(crate) registry: Registry,
    pub(crate) descriptions: Vec<Description>,
}

impl Registrar {
    pub(crate) fn add<I: Instrument>(
        &mut self,
        (section, name): (&'static str, &'static str),
        (help, advice): (&'static str, Option<&'static str>),
        labels: &[&'static str],
        buckets: &'static [f64],
    ) -> I {
        let instrument = I::create(labels, buckets);
        let help = help.trim().to_owned();
        // The registry writes both ends itself.
        let stem = name.strip_suffix("_total").unwrap_or(name);
        self.registry.register(stem, help.trim_end_matches('.'), instrument.clone());
        let (kind, labels) = (I::KIND, labels.to_vec());
        self.descriptions.push(Description { section, name, kind, labels, help, advice });
        instrument
    }
}

/// Declares the struct of all instruments. Each has its help as a doc comment, its type, its name, its labels, the buckets of a
/// histogram, and what an operator does about it.
macro_rules! catalogue {
    ($($section:literal { $(
        $(#[doc = $help:literal])+
        $field:ident: $kind:ty = $name:literal [$($label:literal),*] $(in $buckets:ident)? $(=> $advice:literal)?;
    )+ })+) => {
        /// All instruments.
        pub struct Metrics {
            $($($(#[doc = $help])+ pub $field: $kind,)+)+
        }

        impl Metrics {
            pub(crate) fn register(registrar: &mut $crate::instruments::Registrar) -> Self {
                Self { $($($field: {
                    let buckets: &'static [f64] = &[];
                    $(let _ = buckets; let buckets: &'static [f64] = $buckets;)?
                    let advice: Option<&'static str> = None;
                    $(let _ = advice; let advice = Some($advice);)?
                    registrar.add(($section, $name), (concat!($($help),+), advice), &[$($label),*], buckets)
                },)+)+ }
            }
        }
    };
}

pub(crate) use catalogue;
