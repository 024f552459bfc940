//! Bash's own way to become another program, seen before it happens: its entry for `execve` in the table
//! of the functions that it takes from libraries. The builtin `exec` stays as it is, since bash knows it by
//! its address, and keeps the redirections of no other.
#![allow(unsafe_code, reason = "the tables of a program that is loaded")]

use core::ffi::{CStr, c_char, c_int, c_void};

use rustix::mm::{MprotectFlags, mprotect};

/// What is called instead of `execve`, with its arguments.
pub(crate) type Execve = unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;

unsafe extern "C" {
    fn dl_iterate_phdr(each: extern "C" fn(*const Loaded, usize, *mut c_void) -> c_int, with: *mut c_void) -> c_int;
    fn getpagesize() -> c_int;
}

/// What is loaded, as the loader tells it.
#[repr(C)]
struct Loaded {
    base: usize,
    _name: *const c_char,
    headers: *const Header,
    count: u16,
}

/// A part of it.
#[repr(C)]
struct Header {
    kind: u32,
    _flags: u32,
    _offset: u64,
    address: usize,
    _physical: u64,
    _in_file: u64,
    size: usize,
    _align: u64,
}

/// An entry of its dynamic section.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: usize,
}

/// A place that the loader has filled in.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    _addend: i64,
}

/// A symbol.
#[repr(C)]
struct Symbol {
    name: u32,
    _rest: [u8; 20],
}

const DYNAMIC: u32 = 2;
const MADE_READ_ONLY: u32 = 0x6474_e552;
const TAG_STRINGS: u64 = 5;
const TAG_SYMBOLS: u64 = 6;
/// Tables of places, and how long each is: those of functions that are called, and the others.
const TABLES: [(u64, u64); 2] = [(23, 2), (7, 8)];
/// The kinds of places that hold the address of a function.
#[cfg(target_arch = "x86_64")]
const FUNCTION: [u64; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const FUNCTION: [u64; 2] = [1025, 1026];

/// Has bash call `instead` where it would call `execve`. Where that cannot be done, bash is as it was.
pub(crate) fn execve(instead: Execve) {
    // SAFETY: the callback is called before this returns, and takes what is passed here.
    unsafe { dl_iterate_phdr(first, (&raw const instead).cast_mut().cast()) };
}

/// The first that is told is the program itself.
extern "C" fn first(program: *const Loaded, _size: usize, instead: *mut c_void) -> c_int {
    // SAFETY: as `execve` above passes it, and as the loader promises.
    unsafe { patch(&*program, *instead.cast::<Execve>()) };
    1
}

unsafe fn patch(program: &Loaded, instead: Execve) {
    // SAFETY: the loader says how many there are.
    let headers = unsafe { core::slice::from_raw_parts(program.headers, usize::from(program.count)) };
    let Some(dynamic) = headers.iter().find(|header| header.kind == DYNAMIC) else {
        return;
    };
    let entry = |tag: u64| {
        let mut at = (program.base + dynamic.address) as *const Dynamic;
        loop {
            // SAFETY: the section ends with a tag of 0, which has not come yet.
            let found = unsafe { &*at };
            match found.tag {
                0 => return None,
                found_tag if found_tag == tag => return Some(found.value),
                // SAFETY: as above.
                _ => at = unsafe { at.add(1) },
            }
        }
    };
    // Some loaders write addresses there, others leave the offsets.
    let address = |value: usize| {
        if value < program.base {
            program.base + value
        } else {
            value
        }
    };
    let (Some(strings), Some(symbols)) = (entry(TAG_STRINGS), entry(TAG_SYMBOLS)) else {
        return;
    };
    let (strings, symbols) = (address(strings) as *const c_char, address(symbols) as *const Symbol);
    for (table, size) in TABLES {
        let (Some(table), Some(size)) = (entry(table), entry(size)) else {
            continue;
        };
        let table = address(table) as *const Relocation;
        for at in 0..size / size_of::<Relocation>() {
            // SAFETY: the table is this long, and what it names is in the tables of symbols and strings.
            let (place, name) = unsafe {
                let place = &*table.add(at);
                let symbol = &*symbols.add((place.info >> 32) as usize);
                (place, CStr::from_ptr(strings.add(symbol.name as usize)))
            };
            if FUNCTION.contains(&(place.info & 0xffff_ffff)) && name == c"execve" {
                // SAFETY: it holds the address of a function of this kind.
                unsafe { write(program, headers, place.offset, instead) };
            }
        }
    }
}

/// # Safety
/// There is the address of a function of this kind at this offset of the program.
unsafe fn write(program: &Loaded, headers: &[Header], offset: usize, instead: Execve) {
    let place = (program.base + offset) as *mut Execve;
    let locked = headers.iter().any(|header| {
        header.kind == MADE_READ_ONLY && (header.address..header.address + header.size).contains(&offset)
    });
    // SAFETY: it takes nothing.
    let page = usize::try_from(unsafe { getpagesize() }).unwrap_or(4096);
    let start = ((place as usize) / page * page) as *mut c_void;
    // SAFETY: a page of the program's own data, which is only made what it was while it was loaded.
    unsafe {
        if locked && mprotect(start, page, MprotectFlags::READ | MprotectFlags::WRITE).is_err() {
            return;
        }
        place.write(instead);
        if locked {
            let _ = mprotect(start, page, MprotectFlags::READ);
        }
    }
}
