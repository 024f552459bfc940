//! What the tables say of programs as such, whatever their arguments: which run files, and what they start themselves.

use super::table::{Named, Program, find, without_version};

/// The program of this name, or of the name without its version (`python3.12`), with the name that its table knows.
fn versioned(name: &str) -> Option<(&'static Program, &str)> {
    let bare = without_version(name);
    [name, bare].into_iter().find_map(|name| Some((find(name)?, name)))
}

/// Whether a program runs code of another language than the shell's.
pub fn is_interpreter(name: &str) -> bool {
    versioned(name).is_some_and(|(program, name)| program.is_interpreter(name))
}

/// Whether a program runs a file that is named among its arguments, or else what it is fed: `bash x.sh`, `awk -f x`.
pub fn runs_scripts(name: &str) -> bool {
    versioned(name).is_some_and(|(program, name)| program.scripts.as_ref().is_some_and(|named| named.holds_for(name)))
}

/// The names of the files in its directory that tell a program what to run: `Makefile` for `make`.
pub fn project_files(name: &str) -> &'static [String] {
    versioned(name).map_or(&[], |(program, _)| &program.project_files)
}

/// The programs that a program starts by itself, by name: `as` and `ld` for a compiler.
pub fn helpers(name: &str) -> Vec<&'static str> {
    held(name, |program| &program.helpers)
}

/// The directories of a program's own programs: absolute, or below the prefix that its `bin` stands in.
pub fn helper_directories(name: &str) -> Vec<&'static str> {
    held(name, |program| &program.helpers_in)
}

fn held(name: &str, rows: fn(&Program) -> &[Named<Vec<String>>]) -> Vec<&'static str> {
    let rows = find(name)
        .map_or(&[][..], rows)
        .iter()
        .filter(|row| row.holds_for(name));
    rows.flat_map(|row| &row.what).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_runs_stands_in_its_table_also_by_a_version_of_its_name() {
        for name in [
            ".",
            "source",
            "sh",
            "zsh",
            "awk",
            "gawk",
            "python3",
            "python3.99",
            "ruby3.2",
            "bun",
            "node",
        ] {
            assert!(runs_scripts(name), "{name}");
        }
        for name in ["pnpm", "cat", "jest", "no-such-program", ""] {
            assert!(!runs_scripts(name), "{name}");
        }
        for name in ["python3.99", "php8", "lua5.4", "tsx", "bun"] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in ["irb", "php-cgi", "luac", "pnpm", "bash", "jest"] {
            assert!(!is_interpreter(name), "{name}");
        }
        for name in ["gmake", "make-4.4"] {
            assert_eq!(project_files(name), ["GNUmakefile", "makefile", "Makefile"], "{name}");
        }
        assert!(project_files("cat").is_empty());
    }

    #[test]
    fn helpers_belong_to_the_names_that_start_them() {
        assert!(helpers("rustc").contains(&"cc"));
        assert!(helpers("tar").contains(&"zstd"));
        assert_eq!(helper_directories("pyenv"), ["libexec"]);
        assert!(helper_directories("nix").is_empty());
        assert!(helpers("ls").is_empty());
    }
}
