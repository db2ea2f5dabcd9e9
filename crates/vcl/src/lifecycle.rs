//! Lifecycle of a program: started once for each `vcl.load`, run at each step of a request, stopped
//! at the end. No subroutine runs here without a step budget.

use std::sync::Arc;

use base::Limit;

use crate::state::ctx::{Ctx, Session, Task};
use crate::state::environment::ProgramEnvironment;
use crate::state::program::{Instance, Program};
use crate::sub::{Action, Sub, Subs};
use crate::tag::Tag;
use crate::workspace::Workspace;

/// Step budget of `vcl_init` and `vcl_fini`.
const HOUSEKEEPING_STEPS: u64 = 1_000_000;

impl Program {
    /// Starts a program: makes its backends and runs `vcl_init`.
    ///
    /// # Errors
    /// The reason why `vcl_init` failed, or why one of its objects is unusable.
    pub fn start(
        self: &Arc<Self>,
        environment: &dyn ProgramEnvironment,
        now: f64,
    ) -> Result<Arc<Instance>, String> {
        let instance = Instance::of(self);
        match instance.keep_house(Sub::Init, environment, now) {
            Action::Fail(reason) if reason.is_empty() => Err("vcl_init failed".to_string()),
            Action::Fail(reason) => Err(format!("vcl_init failed: {reason}")),
            _ => {
                for object in instance.objects() {
                    object.complete().map_err(|why| format!("vcl_init failed: {why}"))?;
                }
                Ok(instance)
            }
        }
    }
}

impl Instance {
    /// Runs the subroutine of `ctx`. The task then has the statement that ended it; a failure is
    /// logged as `VCL_Error`.
    pub fn run(&self, ctx: &mut Ctx<'_>) -> Action {
        let Some(routine) = self.program().entry(ctx.sub) else {
            return Action::Fail("the program has no subroutines".into());
        };
        ctx.task.at = None;
        ctx.task.traced = is_traced(ctx);
        let ended = routine.run(ctx).map(|ends| if ends { ctx.task.action.take() } else { None });
        let action = match ended {
            Ok(Some(action)) => action,
            Ok(None) => Action::Fail(format!("{} returned nothing", routine.name()).into()),
            Err(failure) => {
                if ctx.task.workspace.has_overflown() {
                    let of_fetch = Subs::BACKEND.has(ctx.sub);
                    ctx.note_limit(match of_fetch {
                        true => Limit::VclWorkspaceBackend,
                        false => Limit::VclWorkspaceClient,
                    });
                }
                Action::Fail(failure.into_reason())
            }
        };
        if let Action::Fail(reason) = &action {
            self.log_failure(ctx, reason);
        }
        action
    }

    fn log_failure(&self, ctx: &Ctx<'_>, reason: &str) {
        let reason = if reason.is_empty() { "Failed from VCL" } else { reason };
        let line = match ctx.task.at.and_then(|at| self.program().place(at)) {
            Some((file, line)) => format!("{reason} ({} line {line})", file.name),
            None => reason.to_string(),
        };
        ctx.environment.log(Tag::Error, line.as_bytes());
    }

    /// Stops the program: runs `vcl_fini`.
    pub fn stop(self: &Arc<Self>, environment: &dyn ProgramEnvironment, now: f64) {
        self.keep_house(Sub::Fini, environment, now);
    }

    /// Runs a subroutine of the program's lifecycle, without a request.
    fn keep_house(
        self: &Arc<Self>,
        sub: Sub,
        environment: &dyn ProgramEnvironment,
        now: f64,
    ) -> Action {
        let mut session = Session::without_client();
        let mut task = Task::new(HOUSEKEEPING_STEPS, Workspace::unbounded());
        let mut ctx = Ctx {
            sub,
            instance: self,
            environment,
            now,
            session: &mut session,
            task: &mut task,
            req: None,
            req_top: None,
            bereq: None,
            beresp: None,
            obj: None,
            resp: None,
            key: None,
        };
        self.run(&mut ctx)
    }
}

/// Returns true if the task logs `VCL_trace`.
fn is_traced(ctx: &Ctx<'_>) -> bool {
    match (&ctx.req, &ctx.bereq) {
        (Some(req), _) => req.state.trace,
        (None, Some(bereq)) => bereq.state.trace,
        (None, None) => false,
    }
}
