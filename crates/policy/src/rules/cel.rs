//! The operator's own rules. They fail closed: what can't be evaluated is a violation.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use cel::{Context, Env, Program, Value};
use serde_json::json;

use crate::{expression::Estimate, judgement::Judgement, node::shortened};

static ABSENT: serde_json::Value = serde_json::Value::Null;

/// Maximum number of steps of all rules about one driver: a fraction of a second.
const MAX_STEPS: u64 = 5_000_000;

/// The functions of the language, which take longer to set up than to evaluate a rule.
static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Evaluates all rules.
pub(super) fn judge(judgement: &mut Judgement<'_>, executor: &serde_json::Value) {
    let rules = &judgement.rules.cel.0;
    if rules.is_empty() {
        return;
    }
    let properties = json!(judgement.judged.properties);
    let mut estimate = estimate(judgement, executor, &properties);
    let mut left = MAX_STEPS;
    // The library is not ours: a panic in it must not end the gateway.
    let context = catch_unwind(AssertUnwindSafe(|| context(judgement, executor)));
    for rule in rules {
        let steps = estimate.steps(rule.program.expression());
        let outcome = match &context {
            _ if steps > left => Err(format!(
                "it could take {steps} steps, and of {MAX_STEPS} for all rules {left} are left: shorten the lists that it loops over"
            )),
            Ok(Some(context)) => evaluate(&rule.program, context),
            _ => Err("the objects can't be converted to values of CEL".to_owned()),
        };
        left = left.saturating_sub(if steps > left { 0 } else { steps });
        match outcome {
            Ok(true) => {}
            Ok(false) => judgement.report_at(&rule.rule, "Pod", rule.message.clone()),
            Err(error) => {
                let message = format!("{} (the rule could not be evaluated: {error})", rule.message);
                judgement.report_at(&rule.rule, "Pod", message);
            }
        }
    }
}

/// Returns the estimate of what rules cost with these variables.
fn estimate<'a>(
    judgement: &Judgement<'a>,
    executor: &'a serde_json::Value,
    properties: &'a serde_json::Value,
) -> Estimate<'a> {
    let judged = judgement.judged;
    let mut estimate = Estimate::new();
    estimate.add("properties", properties);
    estimate.add("executor", executor);
    estimate.add_list("objects", judged.objects);
    for (name, value) in [("pod", judgement.pod), ("executorTemplate", judged.executor_template)] {
        estimate.add(name, value.unwrap_or(&ABSENT));
    }
    estimate
}

/// Returns the variables that some rule uses. `None` if a value can't be converted.
fn context(judgement: &Judgement<'_>, executor: &serde_json::Value) -> Option<Context<'static, 'static>> {
    let judged = judgement.judged;
    let rules = &judgement.rules.cel.0;
    let uses = |name: &str| rules.iter().any(|rule| rule.program.references().has_variable(name));
    let mut context = Context::with_env(FUNCTIONS.clone());
    let value = |value: &serde_json::Value| cel::to_value(value).ok();
    if uses("pod") {
        context.add_variable_from_value("pod", judgement.pod.map_or(Some(Value::Null), value)?);
    }
    if uses("objects") {
        context.add_variable_from_value("objects", cel::to_value(judged.objects).ok()?);
    }
    if uses("properties") {
        context.add_variable_from_value("properties", cel::to_value(judged.properties).ok()?);
    }
    if uses("executor") {
        context.add_variable_from_value("executor", value(executor)?);
    }
    if uses("executorTemplate") {
        context.add_variable_from_value("executorTemplate", judged.executor_template.map_or(Some(Value::Null), value)?);
    }
    Some(context)
}

fn evaluate(program: &Program, context: &Context<'_, '_>) -> Result<bool, String> {
    match catch_unwind(AssertUnwindSafe(|| program.execute(context))) {
        Ok(Ok(Value::Bool(passes))) => Ok(passes),
        Ok(Ok(other)) => Err(format!("its result is a {}, not a boolean", other.type_of())),
        Ok(Err(error)) => Err(shortened(&error.to_string())),
        Err(_) => Err("the evaluation failed".to_owned()),
    }
}
