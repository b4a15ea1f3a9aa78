use std::cell::RefCell;
use std::sync::Arc;

use isolith_types::{DefinitionKind, FastMap, Import, Imported, Origin};

use crate::look::{File, Found, Look};
use crate::modules::{self, Located};
use crate::steps::{Cost, MOST_STEPS, Steps};

/// What an origin turns out to be.
#[derive(Clone)]
pub(crate) enum Value {
    /// It may be anything.
    Unknown,
    /// Whatever it is, it is not in the project.
    External,
    /// A file as a whole.
    File(File),
    /// A package of several files.
    Package(Package),
    /// A definition itself.
    Found(Found),
    /// A value of a type.
    Instance(Box<Value>),
    /// A type with others in brackets.
    Applied(Box<Value>, Vec<Value>),
    /// The type of a value.
    TypeOf(Box<Value>),
    /// What a class inherits.
    Super(Found),
}

/// A package of several files.
#[derive(Clone)]
pub(crate) struct Package {
    /// The language whose package it is.
    pub(crate) language: Arc<str>,
    /// As the language names it.
    pub(crate) name: String,
}

/// What was found, by the place where it was looked for and by name.
pub(crate) type ByName<P, T> = RefCell<FastMap<P, FastMap<String, T>>>;

/// A value, and what it took to find it.
struct Known {
    value: Value,
    cost: Cost,
}

/// Finds out what origins are.
pub(crate) struct Evaluate<'l, 'p> {
    pub(crate) look: &'l Look<'p>,
    pub(crate) steps: Steps,
    /// The meaning of names that files do not bind, by the file and whether a type is meant;
    /// nothing while that is looked for.
    names: ByName<(u32, bool), Option<Value>>,
    /// What files give to others, in the same way; and by the steps that were left, if there
    /// were too few.
    exports: ByName<(u32, bool, Option<u32>), Known>,
    /// The members of classes, by the file and index.
    pub(crate) members: ByName<(u32, u32), Option<Found>>,
}

/// Where an origin is read.
#[derive(Clone, Copy)]
pub(crate) struct At<'f> {
    pub(crate) file: &'f File,
    /// Whether a type is meant.
    pub(crate) types: bool,
    /// A class whose members may be meant by bare names.
    class: Option<&'f Found>,
    left: u32,
}

impl<'f> At<'f> {
    pub(crate) fn new(file: &'f File, types: bool) -> Self {
        Self { file, types, class: None, left: MOST_STEPS }
    }

    pub(crate) fn with_class(self, class: Option<&'f Found>) -> Self {
        Self { class, ..self }
    }

    pub(crate) fn inside<'g>(self, file: &'g File) -> At<'g> {
        At { file, types: self.types, class: None, left: self.left }
    }

    pub(crate) fn of_type(self) -> Self {
        Self { types: true, ..self }
    }

    pub(crate) fn of_value(self) -> Self {
        Self { types: false, ..self }
    }
}

impl<'l, 'p> Evaluate<'l, 'p> {
    pub(crate) fn new(look: &'l Look<'p>) -> Self {
        let (names, exports) = (RefCell::default(), RefCell::default());
        Self { look, steps: Steps::default(), names, exports, members: RefCell::default() }
    }

    /// What an origin is that no other led to.
    pub(crate) fn begin(&self, origin: &Origin, at: At<'_>) -> Value {
        self.steps.renew();
        self.value(origin, at)
    }

    /// Whether what was found there would be found from anywhere: there were steps enough.
    pub(crate) fn is_certain(&self, at: At<'_>) -> bool {
        at.left >= MOST_STEPS / 2 && self.steps.are_left()
    }

    /// One step: how many more may follow it, if any.
    fn step(&self, at: At<'_>) -> Option<u32> {
        self.steps.take(at.left)
    }

    /// What an origin of a file is.
    pub(crate) fn value(&self, origin: &Origin, at: At<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = At { left, ..at };
        match origin {
            Origin::Unknown => Value::Unknown,
            Origin::Definition(index) => found(at.file.found(*index)),
            Origin::Import(index) => self.import(*index, at),
            Origin::Name(name) => self.unbound(name, at),
            Origin::Implicit(class, name) => self.implicit(*class, name, at),
            Origin::This(class) => instance(found(at.file.found(*class))),
            Origin::Super(class) => match at.file.found(*class) {
                Some(class) => Value::Super(class),
                None => Value::Unknown,
            },
            Origin::Member(object, name) => {
                let object = self.value(object, at.of_value());
                self.member(&object, name, at)
            }
            Origin::Call(callee) => {
                let callee = self.value(callee, at.of_value());
                self.called(&callee, at)
            }
            Origin::Instance(of) => {
                let of = self.value(of, at.of_type());
                self.instance(of, at)
            }
            Origin::Applied(base, arguments) => self.applied(base, arguments, at),
            Origin::Element(of) => {
                let of = self.value(of, at.of_value());
                self.element(&self.settled(of, at), at)
            }
            Origin::Awaited(of) => {
                let of = self.value(of, at.of_value());
                match self.settled(of, at) {
                    Value::Instance(inner) if is_outside_with_arguments(&inner) => {
                        self.element(&Value::Instance(inner), at)
                    }
                    other => other,
                }
            }
        }
    }

    fn applied(&self, base: &Origin, arguments: &[Origin], at: At<'_>) -> Value {
        if let (Origin::Name(name), [value]) = (base, arguments)
            && name == "typeof"
        {
            return Value::TypeOf(Box::new(self.value(value, at.of_value())));
        }
        let base = self.value(base, at.of_type());
        let arguments = arguments.iter().map(|one| self.value(one, at.of_type())).collect();
        Value::Applied(Box::new(base), arguments)
    }

    /// What is imported.
    fn import(&self, index: u32, at: At<'_>) -> Value {
        let Some(import) = at.file.graph.imports.get(index as usize) else {
            return Value::Unknown;
        };
        if import.module.is_empty() {
            let Imported::Name(name) = &import.what else { return Value::Unknown };
            return self.own(name, at);
        }
        let (located, rest) = modules::locate(self.look, at.file, &import.module);
        let module = match located {
            Located::Nowhere => return Value::External,
            Located::File(file) => Value::File(file),
            Located::Package(package) => Value::Package(package),
        };
        let module = rest.iter().fold(module, |outer, name| self.member(&outer, name, at));
        match &import.what {
            Imported::Module | Imported::All => module,
            Imported::Name(name) => self.member(&module, name, at),
        }
    }

    /// What a file means by one of its own names.
    fn own(&self, name: &str, at: At<'_>) -> Value {
        if let Some(top) = at.file.top(name, at.types) {
            return Value::Found(top);
        }
        let graph = &at.file.graph;
        let mut bound = graph.bound(name);
        let bound = bound.find(|index| !graph.imports[*index as usize].module.is_empty());
        bound.map_or(Value::Unknown, |index| self.import(index, at))
    }

    /// What a file gives to others under a name.
    pub(crate) fn exported(&self, file: &File, name: &str, at: At<'_>) -> Value {
        if let Some(known) = self.exported_before(file, name, at) {
            return known;
        }
        let begun = self.steps.begin();
        let value = self.exported_by(file, name, at, &mut Vec::new());
        if let Some(cost) = self.steps.end(&begun, at.left) {
            let known = Known { value: value.clone(), cost };
            let place = (file.number, at.types, cost.too_long);
            self.exports.borrow_mut().entry(place).or_default().insert(name.to_owned(), known);
        }
        value
    }

    /// The same, if it was asked before, and as if it were asked again.
    fn exported_before(&self, file: &File, name: &str, at: At<'_>) -> Option<Value> {
        let exports = self.exports.borrow();
        let known = |too_long| exports.get(&(file.number, at.types, too_long))?.get(name);
        let known = known(None).or_else(|| known(Some(at.left)))?;
        self.steps.pay(known.cost, at.left).then(|| known.value.clone())
    }

    /// The same, if it was not asked before. Files that pass on all of each other's names
    /// would be gone through for ever.
    fn exported_by(&self, file: &File, name: &str, at: At<'_>, asked: &mut Vec<u32>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        if asked.contains(&file.number) {
            return Value::Unknown;
        }
        asked.push(file.number);
        let at = At { left, ..at.inside(file) };
        // A name may be imported in one case and defined in the other.
        if let Some(top) = file.top(name, at.types) {
            return Value::Found(top);
        }
        let import = |index: &u32| &file.graph.imports[*index as usize];
        let mut bound = file.graph.bound(name);
        let passed_on =
            bound.find(|index| import(index).exported && import(index).within.is_none());
        if let Some(index) = passed_on
            && !self.is_from_itself(file, import(&index), name)
        {
            return self.import(index, at);
        }
        let stars = file.graph.stars().iter().map(import).filter(|import| import.exported);
        for star in stars {
            let (located, rest) = modules::locate(self.look, file, &star.module);
            let value = match located {
                Located::File(other) if rest.is_empty() => {
                    self.exported_by(&other, name, at, asked)
                }
                Located::File(other) => {
                    let outer = Value::File(other);
                    let outer =
                        rest.iter().fold(outer, |outer, part| self.member(&outer, part, at));
                    match outer {
                        // `use Enum::*` takes its variants, and nothing of its traits.
                        Value::Found(one) if file.graph.language == "rust" => {
                            found(one.file.child(one.index, name, at.types))
                        }
                        outer => self.member(&outer, name, at),
                    }
                }
                Located::Package(package) => self.in_package(&package, name, at),
                Located::Nowhere => continue,
            };
            if !matches!(value, Value::Unknown | Value::External) {
                return value;
            }
        }
        match modules::submodule(self.look, file, name) {
            Some(file) => Value::File(file),
            None => Value::Unknown,
        }
    }

    /// Whether an import takes a name out of the very file that it is in: a package that
    /// imports its own modules.
    fn is_from_itself(&self, file: &File, import: &Import, name: &str) -> bool {
        let same_name = matches!(&import.what, Imported::Name(other) if other == name);
        let from_itself = || match modules::locate(self.look, file, &import.module) {
            (Located::File(other), rest) => other.number == file.number && rest.is_empty(),
            _ => false,
        };
        same_name && !import.module.is_empty() && from_itself()
    }

    /// What a package of several files has under a name.
    fn in_package(&self, package: &Package, name: &str, at: At<'_>) -> Value {
        const MOST: usize = 30;
        let files = modules::files_of(self.look, package);
        let in_file = |file: &File| modules::in_package(file, package, name, at.types);
        let is_here = |found: &Found| {
            files.binary_search_by(|path| path.as_str().cmp(&found.file.path)).is_ok()
        };
        let named = if files.is_empty() { None } else { self.look.named(name, MOST) };
        let top = match named {
            // Of all files, few define something of this name.
            Some(named) => {
                let mut here = named.iter().filter(|found| is_here(found));
                here.find_map(|found| in_file(&found.file))
            }
            None => files.iter().find_map(|path| in_file(&self.look.file(path)?)),
        };
        if let Some(top) = top {
            return Value::Found(top);
        }
        match modules::subpackage(self.look, package, name) {
            Located::File(file) => Value::File(file),
            Located::Package(package) => Value::Package(package),
            Located::Nowhere => Value::Unknown,
        }
    }

    /// A name that a file does not bind itself.
    fn unbound(&self, name: &str, at: At<'_>) -> Value {
        if let Some(member) = at.class.and_then(|class| self.class_member(class, name, at)) {
            return Value::Found(member);
        }
        let key = (at.file.number, at.types);
        match self.names.borrow().get(&key).and_then(|names| names.get(name)) {
            Some(Some(known)) => return known.clone(),
            // Whoever comes back to it on the way finds nothing more.
            Some(None) => {
                self.steps.cut_short();
                return Value::Unknown;
            }
            None => {}
        }
        self.keep(key, name, None);
        let value = self.outside(name, at);
        if self.is_certain(at) {
            self.keep(key, name, Some(value.clone()));
        } else if let Some(names) = self.names.borrow_mut().get_mut(&key) {
            names.remove(name);
        }
        value
    }

    fn keep(&self, place: (u32, bool), name: &str, value: Option<Value>) {
        self.names.borrow_mut().entry(place).or_default().insert(name.to_owned(), value);
    }

    /// The same, if it is not a member of a class around it.
    fn outside(&self, name: &str, at: At<'_>) -> Value {
        let mut asked = Vec::new();
        for located in modules::around(self.look, at.file, name) {
            let value = match located {
                Located::File(file) => self.exported_by(&file, name, at, &mut asked),
                Located::Package(package) => self.in_package(&package, name, at),
                Located::Nowhere => continue,
            };
            if !matches!(value, Value::Unknown | Value::External) {
                return value;
            }
        }
        let (located, rest) = modules::root(self.look, at.file, name);
        let module = match located {
            Located::Nowhere => return Value::External,
            Located::File(file) => Value::File(file),
            Located::Package(package) => Value::Package(package),
        };
        rest.iter().fold(module, |outer, name| self.member(&outer, name, at))
    }

    /// A name that may be a member of the class around it.
    fn implicit(&self, class: u32, name: &str, at: At<'_>) -> Value {
        let mut around = at.file.found(class);
        while let Some(class) = around {
            if let Some(member) = self.class_member(&class, name, at) {
                return Value::Found(member);
            }
            around = class.definition().parent.and_then(|parent| at.file.found(parent));
        }
        self.unbound(name, at)
    }

    /// Of a value, what it has under a name.
    pub(crate) fn member(&self, object: &Value, name: &str, at: At<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = At { left, ..at };
        match object {
            Value::Unknown => Value::Unknown,
            Value::External | Value::TypeOf(_) => Value::External,
            Value::File(file) => self.exported(file, name, at.inside(file)),
            Value::Package(package) => self.in_package(package, name, at),
            Value::Applied(base, _) => self.member(base, name, at),
            Value::Instance(of) => match of.as_ref() {
                Value::Applied(base, _) => self.instance_member(base, name, at),
                of => self.instance_member(of, name, at),
            },
            Value::Super(class) => {
                self.inherited(class, name, at).map_or(Value::Unknown, Value::Found)
            }
            Value::Found(one) => self.found_member(one, name, at),
        }
    }

    fn instance_member(&self, of: &Value, name: &str, at: At<'_>) -> Value {
        match of {
            Value::Found(class) => {
                self.class_member(class, name, at).map_or(Value::Unknown, Value::Found)
            }
            Value::External => Value::External,
            _ => Value::Unknown,
        }
    }

    fn found_member(&self, one: &Found, name: &str, at: At<'_>) -> Value {
        let kind = one.definition().kind;
        if kind.is_type() {
            return self.class_member(one, name, at).map_or(Value::Unknown, Value::Found);
        }
        if let Some(child) = one.file.child(one.index, name, at.types) {
            return Value::Found(child);
        }
        match kind {
            DefinitionKind::Field
            | DefinitionKind::Variable
            | DefinitionKind::Constant
            | DefinitionKind::Property => match self.settled(Value::Found(one.clone()), at) {
                Value::Found(same) if same.is(one) => Value::Unknown,
                other => self.member(&other, name, at),
            },
            // What a function or a namespace does not have itself is not of the project.
            _ => Value::Unknown,
        }
    }

    /// What a call gives.
    fn called(&self, callee: &Value, at: At<'_>) -> Value {
        match callee {
            Value::Found(one) => {
                let definition = one.definition();
                if definition.kind.is_type() {
                    return self.instance(callee.clone(), at);
                }
                let Some(value) = &definition.value else { return Value::Unknown };
                let value = self.value(value, at.inside(&one.file).of_value());
                match definition.kind {
                    DefinitionKind::Function | DefinitionKind::Method | DefinitionKind::Macro => {
                        value
                    }
                    DefinitionKind::Constructor => value,
                    // The function is the value of a variable.
                    _ => match value {
                        Value::Found(inner) if inner.is(one) => Value::Unknown,
                        value => self.called(&value, at),
                    },
                }
            }
            Value::File(file) => {
                let default = self.exported(file, "default", at.inside(file));
                match default {
                    Value::File(_) => Value::Unknown,
                    default => self.called(&default, at),
                }
            }
            Value::Applied(base, _) => self.called(base, at),
            Value::External => Value::External,
            _ => Value::Unknown,
        }
    }

    /// A value of a type.
    fn instance(&self, of: Value, at: At<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = At { left, ..at };
        match of {
            Value::Unknown => Value::Unknown,
            Value::TypeOf(value) => *value,
            Value::Found(ref one) if one.definition().kind == DefinitionKind::Type => {
                let definition = one.definition();
                let has_members =
                    one.file.graph.definitions.iter().any(|other| other.parent == Some(one.index));
                match &definition.value {
                    Some(value) if !has_members => {
                        let inner = self.value(value, at.inside(&one.file).of_type());
                        self.instance(inner, at)
                    }
                    _ => Value::Instance(Box::new(of)),
                }
            }
            Value::Found(ref one) if !one.definition().kind.is_type() => {
                match self.settled(of.clone(), at) {
                    Value::Found(same) if same.is(one) => Value::Unknown,
                    other => self.instance(other, at),
                }
            }
            Value::Instance(_) => of,
            of => Value::Instance(Box::new(of)),
        }
    }

    /// An element of a value whose type has others in brackets.
    fn element(&self, of: &Value, at: At<'_>) -> Value {
        match of {
            Value::External => Value::External,
            Value::Instance(of) => match of.as_ref() {
                Value::Applied(_, arguments) => match arguments.last() {
                    Some(last) => self.instance(last.clone(), at),
                    None => Value::Unknown,
                },
                Value::External => Value::External,
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    /// The value of a variable in the place of the variable.
    pub(crate) fn settled(&self, value: Value, at: At<'_>) -> Value {
        let Value::Found(one) = &value else { return value };
        let definition = one.definition();
        let is_variable = matches!(
            definition.kind,
            DefinitionKind::Field
                | DefinitionKind::Variable
                | DefinitionKind::Constant
                | DefinitionKind::Property
        );
        match &definition.value {
            _ if !is_variable => value,
            None => Value::Unknown,
            Some(origin) => {
                let Some(left) = self.step(at) else { return Value::Unknown };
                let at = At { left, ..at.inside(&one.file).of_value() };
                match self.value(origin, at) {
                    Value::Found(same) if same.is(one) => Value::Unknown,
                    inner => self.settled(inner, at),
                }
            }
        }
    }
}

fn found(one: Option<Found>) -> Value {
    one.map_or(Value::Unknown, Value::Found)
}

fn instance(of: Value) -> Value {
    match of {
        Value::Unknown => Value::Unknown,
        of => Value::Instance(Box::new(of)),
    }
}

/// `Promise<T>` and the like: a type that is not of the project, with others in brackets.
fn is_outside_with_arguments(of: &Value) -> bool {
    matches!(of, Value::Applied(base, _) if !matches!(base.as_ref(), Value::Found(_)))
}
