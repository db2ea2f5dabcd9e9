//! The life of a program: brought to life once for each `vcl.load`, run at each step of every
//! request, and stopped.

use std::sync::Arc;

use base::Limit;

use crate::state::ctx::{Ctx, Session, Task};
use crate::state::environment::ProgramEnvironment;
use crate::state::program::{Instance, Program};
use crate::sub::{Action, Sub, Subs};
use crate::tag::Tag;
use crate::workspace::Workspace;

/// Steps that `vcl_init` and `vcl_fini` may take.
const HOUSEKEEPING_STEPS: u64 = 1_000_000;

impl Program {
    /// Brings it to life: makes its backends, runs its `vcl_init`.
    ///
    /// # Errors
    /// Why `vcl_init` failed, or an object of it cannot be used.
    pub fn start(
        self: &Arc<Self>,
        world: &dyn ProgramEnvironment,
        now: f64,
    ) -> Result<Arc<Instance>, String> {
        let instance = Instance::of(self);
        match instance.keep_house(Sub::Init, world, now) {
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
    /// Runs the subroutine that `ctx` is for; the task says then which statement ended it. What
    /// fails is logged as `VCL_Error`.
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
        ctx.world.log(Tag::Error, line.as_bytes());
    }

    /// Runs its `vcl_fini`.
    pub fn stop(self: &Arc<Self>, world: &dyn ProgramEnvironment, now: f64) {
        self.keep_house(Sub::Fini, world, now);
    }

    /// Runs a subroutine of the program's own life, for which there is no request.
    fn keep_house(self: &Arc<Self>, sub: Sub, world: &dyn ProgramEnvironment, now: f64) -> Action {
        let mut session = Session::without_client();
        let mut task = Task::new(HOUSEKEEPING_STEPS, Workspace::unbounded());
        let mut ctx = Ctx {
            sub,
            instance: self,
            world,
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

/// Returns true if the task's log gets `VCL_trace`.
fn is_traced(ctx: &Ctx<'_>) -> bool {
    match (&ctx.req, &ctx.bereq) {
        (Some(req), _) => req.state.trace,
        (None, Some(bereq)) => bereq.state.trace,
        (None, None) => false,
    }
}
