//! Where bash jumps back to. It leaves a command that it gives up by `longjmp` to its `top_level`, past
//! every frame between; `setjmp` returns twice, which only assembly can be trusted with.
#![allow(unsafe_code, reason = "setjmp is called from assembly")]

use core::ffi::{c_int, c_void};

unsafe extern "C" {
    /// Bash's place to jump back to: a `sigjmp_buf`.
    static mut top_level: [u8; 0];

    /// Calls `function(argument)` with bash's `top_level` in this frame. Gives 0 if it returned, or the
    /// code with which bash jumped back here.
    fn shieling_guarded(place: *mut c_void, function: extern "C" fn(*mut c_void), argument: *mut c_void) -> c_int;
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden shieling_guarded",
    ".globl shieling_guarded",
    ".type shieling_guarded,@function",
    "shieling_guarded:",
    "push rbp",
    "mov rbp, rsp",
    "push r12",
    "push r13",
    "mov r12, rsi",
    "mov r13, rdx",
    "xor esi, esi",
    "call __sigsetjmp@PLT",
    "test eax, eax",
    "jne 2f",
    "mov rdi, r13",
    "call r12",
    "xor eax, eax",
    "2:",
    "pop r13",
    "pop r12",
    "pop rbp",
    "ret",
    ".size shieling_guarded, .-shieling_guarded",
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".hidden shieling_guarded",
    ".globl shieling_guarded",
    ".type shieling_guarded,@function",
    "shieling_guarded:",
    "stp x29, x30, [sp, #-32]!",
    "mov x29, sp",
    "stp x19, x20, [sp, #16]",
    "mov x19, x1",
    "mov x20, x2",
    "mov w1, #0",
    "bl __sigsetjmp",
    "cbnz w0, 2f",
    "mov x0, x20",
    "blr x19",
    "mov w0, #0",
    "2:",
    "ldp x19, x20, [sp, #16]",
    "ldp x29, x30, [sp], #32",
    "ret",
    ".size shieling_guarded, .-shieling_guarded",
);

/// Calls `function`; gives 0 if it returned, or the code with which bash gave up.
///
/// `function` and what it calls must have nothing to drop, since a jump drops nothing.
pub(crate) fn guarded(function: extern "C" fn(*mut c_void), argument: *mut c_void) -> c_int {
    // SAFETY: `top_level` is large enough for what the C library of this bash puts into it, and the
    // frame that it then leads to does not return before `function` has.
    unsafe { shieling_guarded((&raw mut top_level).cast(), function, argument) }
}
