//! `dirname`.

use super::Call;
use super::options::{Known, Takes, read};

const KNOWN: &[Known] = &[("zero", "z", "zero", Takes::Nothing)];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let asked = read(call.args, KNOWN)?;
    if asked.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    for name in &asked.operands {
        let bare = name.trim_end_matches('/');
        let above = match bare.rfind('/') {
            Some(at) => bare[..at].trim_end_matches('/'),
            None if bare.is_empty() && !name.is_empty() => "",
            None => ".",
        };
        call.out.push_str(if above.is_empty() { "/" } else { above });
        call.out.push(if asked.has("zero") { '\0' } else { '\n' });
    }
    Ok(())
}
