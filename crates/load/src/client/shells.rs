//! `\shell` and `\setshell`.

use std::process::ExitStatus;

use plinth_script::{Command, EvalError, ShellCommand, Target, Value};

use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::ClientError;
use crate::program::Step;
use crate::shell::Shell;

impl Client {
    /// Starts the shell of the current step.
    pub(super) fn start_shell(
        &mut self,
        command: &ShellCommand,
        context: &mut Context<'_>,
    ) -> Result<(), ClientError> {
        let mut text = Vec::new();
        let written = command.write(&self.variables, &mut text);
        written.map_err(|error| self.error(context, error))?;
        let is_read = matches!(self.shell_step(context), Some((_, Some(_))));
        let user = context.shell_user;
        let shell = Shell::start(&text, is_read, user, self.index, &context.registry);
        let shell =
            shell.map_err(|error| self.error(context, format!("{}: {error}", command.failed())))?;
        self.shell = Some(Box::new(shell));
        self.state = State::Shell;
        Ok(())
    }

    /// The shell has ended, or its output is readable.
    pub(crate) fn on_shell_ready(&mut self, context: &mut Context<'_>, now_ns: u64) {
        if self.state == State::Shell {
            let result = self.take_shell(context, now_ns);
            self.end_on_error(result, context, now_ns);
        }
    }

    /// The shell command of the current step, and its variable if it is `\setshell`.
    fn shell_step<'c>(
        &self,
        context: &Context<'c>,
    ) -> Option<(&'c ShellCommand, Option<&'c Target>)> {
        match context.programs.programs[self.script]
            .steps
            .get(self.step)?
        {
            Step::Meta(Command::Shell(shell)) => Some((shell, None)),
            Step::Meta(Command::SetShell { target, shell }) => Some((shell, Some(target))),
            _ => None,
        }
    }

    fn take_shell(&mut self, context: &mut Context<'_>, now_ns: u64) -> Result<(), ClientError> {
        let Some(mut shell) = self.shell.take() else {
            return Ok(());
        };
        let Some((command, target)) = self.shell_step(context) else {
            return Ok(());
        };
        let polled = shell.poll();
        let polled = polled
            .map_err(|error| self.error(context, format!("{}: {error}", command.failed())))?;
        let Some((status, output)) = polled else {
            self.shell = Some(shell);
            return Ok(());
        };
        let value = outcome(command, target.is_some(), status, output);
        let value = value.map_err(|error| self.error(context, error))?;
        if let Some(target) = target {
            let slot = target.slot("setshell");
            let slot = slot.map_err(|error| self.error(context, error))?;
            self.variables.set(slot, value);
        }
        self.command_ended(context);
        self.run(context, now_ns)
    }
}

/// What a shell that has ended means: `\shell` is to succeed, `\setshell` is to print an integer.
fn outcome(
    command: &ShellCommand,
    is_read: bool,
    status: ExitStatus,
    output: &[u8],
) -> Result<Value, EvalError> {
    if is_read {
        return command.integer(output).map(Value::Int);
    }
    if status.success() {
        Ok(Value::Null)
    } else {
        Err(command.failed())
    }
}
