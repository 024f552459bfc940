//! The modules of one crate and the arrows between its files, read with a parser (`syn`).
//!
//! An arrow leads from a file that names an item to the file that defines the item: re-exports are followed,
//! so that `super::Item` leads to the sibling that defines `Item`. A `pub use` makes no arrow of its own, since
//! it publishes a name and uses nothing. Items under `#[cfg(test)]` are left out, with the files of their modules.
//!
//! Knows no types: a method call makes no arrow. Inside macros, whose tokens follow no grammar, every path counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Context as _;
use syn::visit::Visit;

use super::source::Source;

/// How many re-exports are followed from one name. More would be a re-export of itself.
const REEXPORTS_MAX: usize = 16;

/// The path of a module from the root of its crate; the root itself is empty.
type ModulePath = Vec<String>;

/// A crate's modules.
pub(super) struct Modules<'a> {
    modules: BTreeMap<ModulePath, Module<'a>>,
}

/// One module: a file, or an inline module in a file.
struct Module<'a> {
    source: &'a Source,
    children: BTreeSet<String>,
    /// The names of the items that are defined here.
    items: BTreeSet<String>,
    /// Names that a `use` brings in, with the path that each stands for.
    imports: HashMap<String, Vec<String>>,
    /// The modules whose items a `use …::*` brings in.
    globs: Vec<Vec<String>>,
    /// All other paths that the module's code names, and those of private imports.
    named: BTreeSet<Vec<String>>,
}

impl Module<'_> {
    /// The last name of a path, as its definition has it: an import may have renamed it.
    fn defined_name(&self, path: &[String]) -> String {
        let name = match path {
            [alone] => self.imports.get(alone).and_then(|import| import.last()).or(Some(alone)),
            _ => path.last(),
        };
        name.cloned().unwrap_or_default()
    }
}

/// A name that one file uses and another one defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    /// The file that uses the name.
    pub(super) from: String,
    /// The file that defines it.
    pub(super) to: String,
    /// The name.
    pub(super) name: String,
    /// The modules at the root of the crate that the path leads through, re-exports included.
    pub(super) through: Vec<String>,
}

impl<'a> Modules<'a> {
    /// Reads the crate whose root file is `main` and whose other files are below `folder`.
    ///
    /// # Errors
    /// If a file of the crate cannot be parsed.
    pub(super) fn read(main: &'a Source, folder: &str, sources: &'a [Source]) -> anyhow::Result<Self> {
        let files: HashMap<&str, &Source> = sources
            .iter()
            .filter_map(|source| Some((source.path.strip_prefix(folder)?, source)))
            .collect();
        let mut modules = BTreeMap::new();
        let mut waiting = vec![(ModulePath::new(), main)];
        while let Some((path, source)) = waiting.pop() {
            let file = syn::parse_file(&source.text).with_context(|| format!("cannot parse {}", source.path))?;
            let mut outside = Vec::new();
            module(path, source, &file.items, &mut modules, &mut outside);
            for child in outside {
                let place = child.join("/");
                let found = [format!("{place}.rs"), format!("{place}/mod.rs")]
                    .iter()
                    .find_map(|name| files.get(name.as_str()).copied());
                // A module without a file here is made by a build script, or has a `#[path]`.
                waiting.extend(found.map(|source| (child, source)));
            }
        }
        Ok(Self { modules })
    }

    /// All arrows between two different files.
    pub(super) fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (path, module) in &self.modules {
            for named in &module.named {
                let mut through = Vec::new();
                if let Some(to) = self.follow(path, named, &mut through, 0)
                    && to.path != module.source.path
                {
                    arrows.insert(Arrow {
                        from: module.source.path.clone(),
                        to: to.path.clone(),
                        name: module.defined_name(named),
                        through,
                    });
                }
            }
        }
        arrows
    }

    /// The file that defines what `path` names within the module `from`; none if it is outside of the crate,
    /// or is a module as such.
    fn follow(&self, from: &[String], path: &[String], through: &mut Vec<String>, depth: usize) -> Option<&'a Source> {
        let first = path.first().filter(|_| depth < REEXPORTS_MAX)?;
        let module = self.modules.get(from)?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (ModulePath::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            name if module.children.contains(name) => (from.to_vec(), path),
            name if module.items.contains(name) => return Some(module.source),
            name => {
                if let Some(import) = module.imports.get(name) {
                    // The import itself, if it brings in a single item, has its own arrow.
                    let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
                    return self.follow(from, &whole, through, depth + 1);
                }
                return None;
            }
        };
        while rest.first().is_some_and(|segment| segment == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        loop {
            let module = self.modules.get(&at)?;
            let name = rest.first()?;
            if module.children.contains(name) {
                at.push(name.clone());
                if let [only] = &at[..] {
                    through.push(only.clone());
                }
                rest = &rest[1..];
            } else if module.items.contains(name) {
                return Some(module.source);
            } else if let Some(import) = module.imports.get(name) {
                let whole: Vec<String> = import.iter().chain(&rest[1..]).cloned().collect();
                return self.follow(&at, &whole, through, depth + 1);
            } else {
                return module.globs.iter().find_map(|glob| {
                    let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                    self.follow(&at, &whole, through, depth + 1)
                });
            }
        }
    }
}

/// Reads the items of one module into `modules`, with its inline modules. `outside` gets the modules that have
/// files of their own.
fn module<'a>(
    path: ModulePath,
    source: &'a Source,
    items: &[syn::Item],
    modules: &mut BTreeMap<ModulePath, Module<'a>>,
    outside: &mut Vec<ModulePath>,
) {
    let mut found = Module {
        source,
        children: BTreeSet::new(),
        items: BTreeSet::new(),
        imports: HashMap::new(),
        globs: Vec::new(),
        named: BTreeSet::new(),
    };
    for item in items {
        if attributes(item).iter().any(is_test) {
            continue;
        }
        if let syn::Item::Mod(child) = item {
            let name = child.ident.to_string();
            let inside = [&path[..], std::slice::from_ref(&name)].concat();
            found.children.insert(name);
            match &child.content {
                Some((_, items)) => module(inside, source, items, modules, outside),
                None => outside.push(inside),
            }
            continue;
        }
        found.items.extend(name(item));
        found.visit_item(item);
    }
    modules.insert(path, found);
}

impl Module<'_> {
    fn import(&mut self, before: &mut Vec<String>, tree: &syn::UseTree, is_public: bool) {
        let (name, alias) = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree, is_public);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(before, tree, is_public);
                }
                return;
            }
            syn::UseTree::Glob(_) => {
                self.globs.push(before.clone());
                return;
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            syn::UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
        };
        // `use a::b::{self}` stands for `use a::b`.
        let (alias, whole) = if name == "self" {
            (before.last().cloned().unwrap_or_default(), before.clone())
        } else {
            (alias, [&before[..], &[name]].concat())
        };
        if !is_public {
            self.named.insert(whole.clone());
        }
        self.imports.insert(alias, whole);
    }
}

impl Visit<'_> for Module<'_> {
    fn visit_item(&mut self, item: &syn::Item) {
        if !attributes(item).iter().any(is_test) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs[..],
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_test) {
            syn::visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&mut Vec::new(), &item.tree, is_public);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.named
            .insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    // `pub(in crate::x)` says who sees an item, and uses nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_macro(&mut self, invoked: &syn::Macro) {
        self.visit_path(&invoked.path);
        let text = invoked.tokens.to_string().replace(" :: ", "::");
        let mut rest = text.as_str();
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let path = rest[start..]
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
                .map_or(&rest[start..], |end| &rest[start..start + end]);
            let segments: Vec<String> = path
                .split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            if segments.len() > 1 {
                self.named.insert(segments);
            }
            rest = &rest[start + path.len()..];
        }
    }
}

fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|argument| argument.is_ident("test"))
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows of a crate with these files, as `from to name`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("crates/x/src/{path}"), text))
            .collect();
        let modules = Modules::read(&sources[0], "crates/x/src/", &sources).unwrap();
        let short = |path: &str| path.trim_start_matches("crates/x/src/").to_owned();
        let arrows = modules.arrows();
        let shown = arrows
            .iter()
            .map(|arrow| format!("{} {} {}", short(&arrow.from), short(&arrow.to), arrow.name));
        shown.collect()
    }

    #[test]
    fn an_arrow_leads_to_the_file_that_defines_the_name() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::Item;"),
            ("a.rs", "use crate::Item as Other; fn f(_: Other) {}"),
            ("b/mod.rs", "mod deep; pub use self::deep::Item;"),
            ("b/deep.rs", "pub struct Item;"),
        ];
        assert_eq!(arrows(&files), ["a.rs b/deep.rs Item"]);
    }

    #[test]
    fn a_name_is_found_in_a_path_a_group_a_glob_and_a_macro() {
        let b = ("b.rs", "pub struct Item; pub fn item() {}");
        for a in [
            "use super::b::Item;",
            "use crate::{b::{self, Item}};",
            "use crate::b; fn f() -> b::Item { todo!() }",
            "fn f() { super::b::item() }",
            "fn f() { if x { println!(\"{}\", crate::b::item()); } }",
            "fn f() { use crate::b::Item; }",
        ] {
            let found = arrows(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), b]);
            assert_eq!(found.len(), 1, "{a}: {found:?}");
        }
        let glob = arrows(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::c::Item;"),
            b,
            ("c.rs", "pub use crate::b::*;"),
        ]);
        assert_eq!(glob, ["a.rs b.rs Item"]);
    }

    #[test]
    fn tests_modules_as_such_and_other_crates_make_no_arrow() {
        let b = ("b.rs", "pub struct Item;");
        for a in [
            "#[cfg(test)] mod tests { use crate::b::Item; }",
            "#[cfg(test)] use crate::b::Item;",
            "#[cfg(test)] mod inner;",
            "use crate::b;",
            "use std::b::Item;",
            "pub(in crate::b) fn f() {}",
            "fn f() { let item = \"crate::b::Item\"; }",
            "struct Item; fn f(_: Item) {}",
        ] {
            let files = [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", a),
                b,
                ("a/inner.rs", "use crate::b::Item;"),
            ];
            assert_eq!(arrows(&files), Vec::<String>::new(), "{a}");
        }
    }
}
