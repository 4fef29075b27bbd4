//! What an evaluation would cost at most, before it is made: the library bounds nothing, and a request decides how long the lists
//! are. A loop costs what its step costs, as often as the longest list has elements that its range can be.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, operators},
};
use serde_json::Value;

/// The cost of a regular expression, which is compiled at each call, in steps.
const REGEX: u64 = 2000;
/// The characters of a text that cost a step.
const TEXT: usize = 64;

/// The values that an expression may have.
#[derive(Debug, Clone, Default)]
struct Shape<'a> {
    values: Vec<&'a Value>,
    /// The elements, if it is a list that the expression itself makes.
    items: Vec<&'a Value>,
    /// Whether it may have other parts than those of `values` and `items`.
    is_unknown: bool,
    /// Maximum number of elements.
    length: u64,
    /// Maximum number of values in it, itself included.
    weight: u64,
}

impl<'a> Shape<'a> {
    fn atom() -> Self {
        Self { weight: 1, ..Self::default() }
    }

    fn of(values: Vec<&'a Value>) -> Self {
        let length = values.iter().map(|value| length(value)).max().unwrap_or_default();
        let weight = values.iter().map(|value| weight(value)).max().unwrap_or(1);
        Self { values, length, weight, ..Self::default() }
    }

    /// Returns what is known of either of two values.
    fn or(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self.items.extend(other.items);
        self.is_unknown |= other.is_unknown;
        self.length = self.length.max(other.length);
        self.weight = self.weight.max(other.weight);
        self
    }

    /// Returns the parts of values that `parts` selects. Parts of what is unknown may be as large as the whole.
    fn parts(&self, parts: impl Fn(&'a Value) -> Vec<&'a Value>, with_items: bool) -> Self {
        let mut values: Vec<&Value> = self.values.iter().flat_map(|value| parts(value)).collect();
        values.extend(self.items.iter().copied().filter(|_| with_items));
        let known = Self::of(values);
        match self.is_unknown {
            true => known.or(Self { is_unknown: true, length: self.weight, weight: self.weight, ..Self::default() }),
            false => known,
        }
    }
}

/// The variables of an evaluation, and those of the loops around the current place.
#[derive(Debug)]
pub(crate) struct Estimate<'a> {
    variables: Vec<(&'a str, Shape<'a>)>,
}

impl<'a> Estimate<'a> {
    pub(crate) fn new() -> Self {
        Self { variables: Vec::new() }
    }

    /// Adds a variable with this value.
    pub(crate) fn add(&mut self, name: &'a str, value: &'a Value) {
        self.variables.push((name, Shape::of(vec![value])));
    }

    /// Adds a variable that is a list of these values.
    pub(crate) fn add_list(&mut self, name: &'a str, items: &'a [Value]) {
        let weight = items.iter().map(weight).sum();
        let items: Vec<&Value> = items.iter().collect();
        self.variables.push((name, Shape { length: items.len() as u64, weight, items, ..Shape::default() }));
    }

    /// Returns how many steps the evaluation of an expression takes at most.
    pub(crate) fn steps(&mut self, expression: &'a IdedExpr) -> u64 {
        self.expression(expression).0
    }

    fn expression(&mut self, expression: &'a IdedExpr) -> (u64, Shape<'a>) {
        match &expression.expr {
            Expr::Ident(name) => (1, self.variable(name)),
            Expr::Select(select) => {
                let (steps, operand) = self.expression(&select.operand);
                let field = operand.parts(|value| value.get(&select.field).into_iter().collect(), false);
                (steps.saturating_add(1), if select.test { Shape::atom() } else { field })
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => {
                let mut parts = Vec::new();
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::StructField(field) => parts.push(&field.value),
                        EntryExpr::MapEntry(entry) => parts.extend([&entry.key, &entry.value]),
                    }
                }
                let (steps, shapes) = self.all(parts);
                let weight = shapes.iter().fold(1, |sum: u64, shape| sum.saturating_add(shape.weight));
                (steps, Shape { is_unknown: true, length: map.entries.len() as u64, weight, ..Shape::default() })
            }
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => (1, Shape::atom()),
        }
    }

    fn variable(&self, name: &str) -> Shape<'a> {
        let known = self.variables.iter().rev().find(|(own, _)| *own == name);
        known.map_or_else(Shape::atom, |(_, shape)| shape.clone())
    }

    /// Adds up the steps of several expressions.
    fn all(&mut self, parts: impl IntoIterator<Item = &'a IdedExpr>) -> (u64, Vec<Shape<'a>>) {
        let mut steps: u64 = 1;
        let mut shapes = Vec::new();
        for part in parts {
            let (own, shape) = self.expression(part);
            steps = steps.saturating_add(own);
            shapes.push(shape);
        }
        (steps, shapes)
    }

    fn call(&mut self, call: &'a CallExpr) -> (u64, Shape<'a>) {
        let (steps, mut shapes) = self.all(call.target.as_deref().into_iter().chain(&call.args));
        let weights = shapes.iter().map(|shape| shape.weight);
        let (sum, least) = (weights.clone().fold(0, u64::saturating_add), weights.min().unwrap_or_default());
        match call.func_name.as_str() {
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE => {
                (steps, Shape::atom())
            }
            operators::CONDITIONAL => (steps, shapes.into_iter().skip(1).fold(Shape::atom(), Shape::or)),
            operators::INDEX | operators::OPT_INDEX => (steps, shapes.swap_remove(0).parts(children, true)),
            // What is equal is compared to the end of the smaller one.
            operators::EQUALS | operators::NOT_EQUALS => (steps.saturating_add(least), Shape::atom()),
            operators::ADD => {
                let length = shapes.iter().map(|shape| shape.length).fold(0, u64::saturating_add);
                let joined = shapes.into_iter().fold(Shape::atom(), Shape::or);
                (steps.saturating_add(sum), Shape { length, weight: sum, ..joined })
            }
            "matches" => (steps.saturating_add(sum).saturating_add(REGEX), Shape::atom()),
            "size" => (steps, Shape::atom()),
            // `in`, comparisons and functions: their results are no larger than what they read.
            _ => {
                let length = sum.saturating_mul(TEXT as u64);
                (steps.saturating_add(sum), Shape { is_unknown: true, length, weight: sum, ..Shape::default() })
            }
        }
    }

    fn list(&mut self, elements: &'a [IdedExpr]) -> (u64, Shape<'a>) {
        let (steps, shapes) = self.all(elements);
        let weight = shapes.iter().fold(1, |sum: u64, shape| sum.saturating_add(shape.weight));
        let is_unknown = shapes.iter().any(|shape| shape.is_unknown || !shape.items.is_empty());
        let items = shapes.into_iter().flat_map(|shape| shape.values).collect();
        (steps, Shape { items, is_unknown, length: elements.len() as u64, weight, ..Shape::default() })
    }

    fn comprehension(&mut self, loops: &'a ComprehensionExpr) -> (u64, Shape<'a>) {
        let (range_steps, range) = self.expression(&loops.iter_range);
        let (init_steps, init) = self.expression(&loops.accu_init);
        let element = range.parts(children, true);
        let outer = self.variables.len();
        for name in [Some(&loops.iter_var), loops.iter_var2.as_ref()].into_iter().flatten() {
            self.variables.push((name, element.clone()));
        }
        self.variables.push((&loops.accu_var, Shape::atom()));
        let (cond_steps, _) = self.expression(&loops.loop_cond);
        let (step_steps, step) = self.expression(&loops.loop_step);
        let (result_steps, _) = self.expression(&loops.result);
        self.variables.truncate(outer);
        // Each element is copied into its variable.
        let each = cond_steps.saturating_add(step_steps).saturating_add(1);
        let steps = range.length.saturating_mul(each).saturating_add(range.weight);
        let steps = [range_steps, init_steps, result_steps].into_iter().fold(steps, u64::saturating_add);
        // `map` and `filter` append to a list, the others have a single value.
        let result = match (&loops.accu_init.expr, init.length) {
            (Expr::List(_), 0) => {
                let weight = range.length.saturating_mul(step.weight).saturating_add(1);
                let items: Vec<&Value> = step.items.into_iter().chain(step.values).collect();
                Shape { items, is_unknown: step.is_unknown, length: range.length, weight, ..Shape::default() }
            }
            _ => Shape::atom(),
        };
        (steps, result)
    }
}

/// Returns the elements of a list, or the values of a map. A map's keys are texts, which have no parts.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn length(value: &Value) -> u64 {
    match value {
        Value::Array(list) => list.len() as u64,
        Value::Object(map) => map.len() as u64,
        _ => 0,
    }
}

/// Returns how many values a value consists of. A long text counts as several.
fn weight(value: &Value) -> u64 {
    let text = |text: &str| (text.len() / TEXT) as u64;
    match value {
        Value::String(own) => 1 + text(own),
        Value::Array(list) => list.iter().map(weight).sum::<u64>() + 1,
        Value::Object(map) => map.iter().map(|(key, value)| text(key) + 1 + weight(value)).sum::<u64>() + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use cel::Program;
    use serde_json::json;

    use super::*;

    /// Returns the steps for a pod with this many volumes, containers and mounts in each.
    fn steps(expression: &str, [volumes, containers, mounts]: [usize; 3]) -> u64 {
        let named = |count: usize| (0..count).map(|at| json!({ "name": format!("n{at}") })).collect::<Vec<_>>();
        let container = json!({ "name": "c", "image": "i", "volumeMounts": named(mounts) });
        let pod = json!({ "spec": { "volumes": named(volumes), "containers": vec![container; containers] } });
        let objects = [pod.clone()];
        let program = Program::compile(expression).unwrap();
        let mut estimate = Estimate::new();
        estimate.add("pod", &pod);
        estimate.add_list("objects", &objects);
        estimate.steps(program.expression())
    }

    const UNUSED: &str =
        "pod.spec.volumes.all(v, pod.spec.containers.exists(c, c.volumeMounts.exists(m, m.name == v.name)))";

    #[test]
    fn the_cost_of_loops_is_the_product_of_their_ranges() {
        let small = steps(UNUSED, [10, 2, 10]);
        assert!((200..10_000).contains(&small), "{small}");
        let grows = |sizes, times: u64| {
            let large = steps(UNUSED, sizes);
            assert!((small * times / 2..small * times * 2).contains(&large), "{sizes:?}: {small}, {large}");
        };
        grows([100, 2, 10], 10);
        grows([10, 20, 10], 10);
        grows([100, 2, 100], 100);
        assert!(steps(UNUSED, [1000, 1, 1000]) > 5_000_000);
    }

    #[test]
    fn a_loop_over_what_another_makes_is_counted() {
        let (few, many) = ([4, 1, 4], [400, 1, 4]);
        for expression in [
            "pod.spec.volumes.filter(v, v.name != 'a').all(v, pod.spec.volumes.exists(w, w == v))",
            "pod.spec.volumes.map(v, v.name).all(v, pod.spec.volumes.exists(w, w.name == v))",
            "(pod.spec.volumes + pod.spec.volumes).all(v, pod.spec.volumes.exists(w, w.name == v.name))",
            "(has(pod.spec.x) ? pod.spec.x : pod.spec.volumes).all(v, pod.spec.volumes.exists(w, w == v))",
            "[pod].all(p, p.spec.volumes.all(v, p.spec.volumes.exists(w, w == v)))",
            "objects.all(o, o.spec.volumes.all(v, o.spec.volumes.exists(w, w == v)))",
            "[objects, objects].all(list, list.all(o, o.spec.volumes.all(v, v.name in o.spec.volumes)))",
            "pod.all(k, pod[k].all(l, pod[k][l].all(v, pod[k][l].exists(w, w == v))))",
            "{'a': pod}.a.spec.volumes.all(v, pod.spec.volumes.exists(w, w == v))",
        ] {
            let (few, many) = (steps(expression, few), steps(expression, many));
            assert!(many > 1000 * few && many > 100_000, "{expression}: {few}, {many}");
        }
    }

    #[test]
    fn a_regular_expression_is_dearer_than_a_comparison() {
        let all = |condition: &str| steps(&format!("pod.spec.volumes.all(v, {condition})"), [100, 1, 1]);
        assert!(all("v.name.matches('a.*')") > 100 * all("v.name == 'a'"));
    }
}
