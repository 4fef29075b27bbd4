//! The operator's own rules. They fail closed: what can't be evaluated is a violation.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use cel::{Context, Env, Program, Value};

use crate::{judgement::Judgement, node::shortened};

/// The functions of the language, which take longer to set up than to evaluate a rule.
static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Evaluates all rules.
pub(super) fn judge(judgement: &mut Judgement<'_>, executor: &serde_json::Value) {
    let rules = &judgement.rules.cel.0;
    if rules.is_empty() {
        return;
    }
    // The library is not ours: a panic in it must not end the gateway.
    let context = catch_unwind(AssertUnwindSafe(|| context(judgement, executor)));
    for rule in rules {
        let outcome = match &context {
            Ok(Some(context)) => evaluate(&rule.program, context),
            _ => Err("the objects can't be converted to values of CEL".to_owned()),
        };
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
