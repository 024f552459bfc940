//! The options for the tools of a server. Their values stand in [`Settings`], so that they can be set in
//! a `shieling.toml`, too.

use clap::Args;

use super::{Settings, Size};

/// Which tools an agent gets, and how they behave.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Tools {
    /// Offer only these tools; repeatable [default: all that the environment can serve]
    ///
    /// Names are those of the dialect, such as `Read` with `--dialect claude`; an unknown one is an error
    /// that lists them. On the command line this replaces the list of `shieling.toml`.
    #[arg(long, value_name = "NAME", help_heading = "Tools")]
    include_tool: Vec<String>,

    /// Do not offer this tool, even if it is included; repeatable
    #[arg(long, value_name = "NAME", help_heading = "Tools")]
    exclude_tool: Vec<String>,

    /// Tell of images as binary files, for models that see none
    #[arg(long, help_heading = "Tools", conflicts_with = "max_image_bytes")]
    no_images: bool,

    /// Give images up to this size as images, and tell of larger ones as binary files [default: 10MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Tools")]
    max_image_bytes: Option<Size>,

    /// Try the same failing call so many times, then refuse it until something has changed [default: 5]
    ///
    /// The same is the same tool with the same arguments. It is tried again once another call has changed
    /// something, or after a minute. What may come about by itself, as a file that is missing or a
    /// job that runs, is looked at as often as asked. 0 refuses nothing.
    #[arg(long, value_name = "N", help_heading = "Tools")]
    max_repeats: Option<u32>,

    /// Ask a person about every command, whatever policy and `--approval` say
    ///
    /// Through the agent's client, as with `--approval always`, which asks about changes of files as well.
    /// Where nobody can be asked, no command runs.
    #[arg(long, help_heading = "Approval")]
    require_shell_approval: bool,

    /// Ask a person about every change that a tool for files makes, and show it
    ///
    /// What commands change is not asked about again. Where nobody can be asked, nothing is changed.
    #[arg(long, help_heading = "Approval")]
    require_write_approval: bool,
}

impl Tools {
    /// The same settings with these.
    pub(crate) fn over(&self, settings: &Settings) -> Settings {
        Settings {
            include_tool: self.include_tool.clone(),
            exclude_tool: self.exclude_tool.clone(),
            no_images: self.no_images,
            max_image_bytes: self.max_image_bytes,
            max_repeats: self.max_repeats,
            require_shell_approval: self.require_shell_approval,
            require_write_approval: self.require_write_approval,
            ..settings.clone()
        }
    }
}
