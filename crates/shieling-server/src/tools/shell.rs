//! The tools for commands, jobs and people.

use shieling::environment::Ability;

use super::definition::{Definition, Hints, LOOKS, LOOKS_ON, Tool, schema};
use crate::arguments;
use crate::shapes;

pub(super) const TOOLS: &[Definition] = &[
    Definition {
        tool: Tool::Shell,
        name: "shell",
        title: "Run a command",
        description: "Runs bash text in a persistent session, whose directory, variables and functions last from call to call. Its input is empty: give answers as options, or start it with `background` or `tty` and write to it. A refusal names its rule and what is allowed instead.",
        takes: schema::<arguments::Shell>,
        gives: shapes::outcome,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
        needs: &[Ability::Commands],
    },
    Definition {
        tool: Tool::ShellView,
        name: "shell_view",
        title: "Look at a job",
        description: "Shows what a job has written since the last view, and how it is. Can wait for more.",
        takes: schema::<arguments::ShellView>,
        gives: shapes::view,
        hints: LOOKS_ON,
        needs: &[Ability::Jobs],
    },
    Definition {
        tool: Tool::ShellWrite,
        name: "shell_write",
        title: "Type into a job",
        description: "Types text, then keys, into a job that was started with `background` or `tty`, and shows the output that followed.",
        takes: schema::<arguments::ShellWrite>,
        gives: shapes::view,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
        needs: &[Ability::Jobs, Ability::Input],
    },
    Definition {
        tool: Tool::ShellWait,
        name: "shell_wait",
        title: "Wait for a job",
        description: "Waits until a job's output matches a pattern, a port takes connections, or, with neither, the job ends.",
        takes: schema::<arguments::ShellWait>,
        gives: shapes::waited,
        hints: LOOKS_ON,
        needs: &[Ability::Jobs],
    },
    Definition {
        tool: Tool::ShellKill,
        name: "shell_kill",
        title: "End a job",
        description: "Ends a job with every process that it started, and shows what it wrote at the end.",
        takes: schema::<arguments::ShellKill>,
        gives: shapes::view,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: true,
            open_world: false,
        },
        needs: &[Ability::Jobs],
    },
    Definition {
        tool: Tool::ShellList,
        name: "shell_list",
        title: "List sessions and jobs",
        description: "Lists the sessions, with where they stand, and the jobs, running and ended.",
        takes: schema::<arguments::Nothing>,
        gives: shapes::listing,
        hints: LOOKS,
        needs: &[Ability::Commands],
    },
    Definition {
        tool: Tool::ShellOutput,
        name: "shell_output",
        title: "Read a whole output",
        description: "Reads on in the whole output of a command whose outcome left some out, by its `output_id`.",
        takes: schema::<arguments::ShellOutput>,
        gives: shapes::chunk,
        hints: LOOKS,
        needs: &[Ability::Commands],
    },
    Definition {
        tool: Tool::AskHuman,
        name: "ask_human",
        title: "Ask the person",
        description: "Asks the person who is there: for a decision, for what only they know, or to do a step themselves, such as a login. Says so at once if nobody is there.",
        takes: schema::<arguments::AskHuman>,
        gives: shapes::answer,
        hints: Hints {
            // A person may take over the keyboard, and do anything.
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: true,
        },
        needs: &[],
    },
    Definition {
        tool: Tool::Environment,
        name: "environment",
        title: "Describe the environment",
        description: "Describes where commands run: system, directory, network, limits, policies, which tools are there, and how many commands the rate limit has left.",
        takes: schema::<arguments::Nothing>,
        gives: shapes::environment,
        hints: LOOKS,
        needs: &[],
    },
];
