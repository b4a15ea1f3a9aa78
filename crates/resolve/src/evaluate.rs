use std::cell::RefCell;
use std::sync::Arc;

use isolith_types::{DefinitionKind, FastMap, Import, Imported, Origin};

use crate::modules::{self, Located};
use crate::project_view::{DefinitionRef, File, ProjectView};
use crate::steps::{Cost, MAX_DEPTH, StepBudget};

/// What an origin evaluates to.
#[derive(Clone)]
pub(crate) enum Value {
    /// Not known.
    Unknown,
    /// Something outside the project.
    External,
    /// A file, as a module.
    File(File),
    /// A package of several files.
    Package(Package),
    /// A definition itself.
    Definition(DefinitionRef),
    /// An instance of a type.
    Instance(Box<Value>),
    /// A generic type with its arguments.
    Applied(Box<Value>, Vec<Value>),
    /// The type of a value.
    TypeOf(Box<Value>),
    /// The bases of a class: `super`.
    Super(DefinitionRef),
}

/// A package of several files.
#[derive(Clone)]
pub(crate) struct Package {
    /// The package's language.
    pub(crate) language: Arc<str>,
    /// The package's name in that language.
    pub(crate) name: String,
}

/// A cache by place and name.
pub(crate) type ByName<P, T> = RefCell<FastMap<P, FastMap<String, T>>>;

/// The value of an exported name, and the cost of finding it.
struct CachedExport {
    value: Value,
    cost: Cost,
}

/// Evaluates origins.
pub(crate) struct Evaluator<'l, 'p> {
    pub(crate) view: &'l ProjectView<'p>,
    pub(crate) steps: StepBudget,
    /// The values of unbound names, by file and whether a type is meant; `None` while the
    /// evaluation is under way.
    names: ByName<(u32, bool), Option<Value>>,
    /// The exports of files, by file, whether a type is meant and, if a path was too deep, the
    /// remaining depth.
    exports: ByName<(u32, bool, Option<u32>), CachedExport>,
    /// The members of classes, by file and index.
    pub(crate) members: ByName<(u32, u32), Option<DefinitionRef>>,
}

/// The context in which an origin is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct EvalContext<'f> {
    pub(crate) file: &'f File,
    /// Whether a type is meant.
    pub(crate) types: bool,
    /// A class whose members bare names may mean.
    class: Option<&'f DefinitionRef>,
    /// The remaining depth.
    left: u32,
}

impl<'f> EvalContext<'f> {
    pub(crate) fn new(file: &'f File, types: bool) -> Self {
        Self { file, types, class: None, left: MAX_DEPTH }
    }

    pub(crate) fn with_class(self, class: Option<&'f DefinitionRef>) -> Self {
        Self { class, ..self }
    }

    pub(crate) fn inside<'g>(self, file: &'g File) -> EvalContext<'g> {
        EvalContext { file, types: self.types, class: None, left: self.left }
    }

    pub(crate) fn of_type(self) -> Self {
        Self { types: true, ..self }
    }

    pub(crate) fn of_value(self) -> Self {
        Self { types: false, ..self }
    }
}

impl<'l, 'p> Evaluator<'l, 'p> {
    pub(crate) fn new(view: &'l ProjectView<'p>) -> Self {
        let (names, exports) = (RefCell::default(), RefCell::default());
        Self { view, steps: StepBudget::default(), names, exports, members: RefCell::default() }
    }

    /// Evaluates an independent origin, with a fresh step budget.
    pub(crate) fn evaluate(&self, origin: &Origin, at: EvalContext<'_>) -> Value {
        self.steps.reset();
        self.value(origin, at)
    }

    /// Whether a result found here holds in any context, because no step limit was near.
    pub(crate) fn is_cacheable(&self, at: EvalContext<'_>) -> bool {
        at.left >= MAX_DEPTH / 2 && self.steps.are_left()
    }

    /// Takes one step. Returns the remaining depth, or `None` if a limit is reached.
    fn step(&self, at: EvalContext<'_>) -> Option<u32> {
        self.steps.take(at.left)
    }

    /// Evaluates an origin as part of another evaluation.
    pub(crate) fn value(&self, origin: &Origin, at: EvalContext<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = EvalContext { left, ..at };
        match origin {
            Origin::Unknown => Value::Unknown,
            Origin::Definition(index) => found(at.file.definition(*index)),
            Origin::Import(index) => self.import(*index, at),
            Origin::Name(name) => self.unbound(name, at),
            Origin::Implicit(class, name) => self.implicit(*class, name, at),
            Origin::This(class) => instance(found(at.file.definition(*class))),
            Origin::Super(class) => match at.file.definition(*class) {
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
                self.element(&self.dereferenced(of, at), at)
            }
            Origin::Awaited(of) => {
                let of = self.value(of, at.of_value());
                match self.dereferenced(of, at) {
                    Value::Instance(inner) if is_external_generic(&inner) => {
                        self.element(&Value::Instance(inner), at)
                    }
                    other => other,
                }
            }
        }
    }

    fn applied(&self, base: &Origin, arguments: &[Origin], at: EvalContext<'_>) -> Value {
        if let (Origin::Name(name), [value]) = (base, arguments)
            && name == "typeof"
        {
            return Value::TypeOf(Box::new(self.value(value, at.of_value())));
        }
        let base = self.value(base, at.of_type());
        let arguments = arguments.iter().map(|one| self.value(one, at.of_type())).collect();
        Value::Applied(Box::new(base), arguments)
    }

    /// The value of an import.
    fn import(&self, index: u32, at: EvalContext<'_>) -> Value {
        let Some(import) = at.file.graph.imports.get(index as usize) else {
            return Value::Unknown;
        };
        if import.module.is_empty() {
            let Imported::Name(name) = &import.what else { return Value::Unknown };
            return self.own(name, at);
        }
        let (located, rest) = modules::locate(self.view, at.file, &import.module);
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

    /// The value of a name that the file binds at its top level.
    fn own(&self, name: &str, at: EvalContext<'_>) -> Value {
        if let Some(top) = at.file.top(name, at.types) {
            return Value::Definition(top);
        }
        let graph = &at.file.graph;
        let mut bound = graph.bound(name);
        let bound = bound.find(|index| !graph.imports[*index as usize].module.is_empty());
        bound.map_or(Value::Unknown, |index| self.import(index, at))
    }

    /// The value that a file exports under a name.
    pub(crate) fn exported(&self, file: &File, name: &str, at: EvalContext<'_>) -> Value {
        if let Some(known) = self.exported_before(file, name, at) {
            return known;
        }
        let begun = self.steps.start_measuring();
        let value = self.exported_by(file, name, at, &mut Vec::new());
        if let Some(cost) = self.steps.finish_measuring(&begun, at.left) {
            let known = CachedExport { value: value.clone(), cost };
            let place = (file.number, at.types, cost.too_deep);
            self.exports.borrow_mut().entry(place).or_default().insert(name.to_owned(), known);
        }
        value
    }

    /// The cached value of an export, if the budget allows the same result.
    fn exported_before(&self, file: &File, name: &str, at: EvalContext<'_>) -> Option<Value> {
        let exports = self.exports.borrow();
        let known = |too_deep| exports.get(&(file.number, at.types, too_deep))?.get(name);
        let known = known(None).or_else(|| known(Some(at.left)))?;
        self.steps.pay(known.cost, at.left).then(|| known.value.clone())
    }

    /// The value of an export, uncached. `asked` holds the files already visited, because
    /// files may re-export everything from each other.
    fn exported_by(
        &self,
        file: &File,
        name: &str,
        at: EvalContext<'_>,
        asked: &mut Vec<u32>,
    ) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        if asked.contains(&file.number) {
            return Value::Unknown;
        }
        asked.push(file.number);
        let at = EvalContext { left, ..at.inside(file) };
        // A file may both import and define the name; the definition counts.
        if let Some(top) = file.top(name, at.types) {
            return Value::Definition(top);
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
            let (located, rest) = modules::locate(self.view, file, &star.module);
            let value = match located {
                Located::File(other) if rest.is_empty() => {
                    self.exported_by(&other, name, at, asked)
                }
                Located::File(other) => {
                    let outer = Value::File(other);
                    let outer =
                        rest.iter().fold(outer, |outer, part| self.member(&outer, part, at));
                    match outer {
                        // `use Enum::*` imports the variants, not members of its traits.
                        Value::Definition(one) if file.graph.language == "rust" => {
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
        match modules::submodule(self.view, file, name) {
            Some(file) => Value::File(file),
            None => Value::Unknown,
        }
    }

    /// Whether an import refers to its own file, as in a package that imports its own modules.
    fn is_from_itself(&self, file: &File, import: &Import, name: &str) -> bool {
        let same_name = matches!(&import.what, Imported::Name(other) if other == name);
        let from_itself = || match modules::locate(self.view, file, &import.module) {
            (Located::File(other), rest) => other.number == file.number && rest.is_empty(),
            _ => false,
        };
        same_name && !import.module.is_empty() && from_itself()
    }

    /// The value of a name in a package.
    fn in_package(&self, package: &Package, name: &str, at: EvalContext<'_>) -> Value {
        const MAX_DEFINITIONS: usize = 30;
        let files = modules::files_of(self.view, package);
        let in_file = |file: &File| modules::in_package(file, package, name, at.types);
        let is_here = |found: &DefinitionRef| {
            files.binary_search_by(|path| path.as_str().cmp(&found.file.path)).is_ok()
        };
        let named = if files.is_empty() { None } else { self.view.named(name, MAX_DEFINITIONS) };
        let top = match named {
            // Few definitions have this name: look at those in the package.
            Some(named) => {
                let mut here = named.iter().filter(|found| is_here(found));
                here.find_map(|found| in_file(&found.file))
            }
            None => files.iter().find_map(|path| in_file(&self.view.file(path)?)),
        };
        if let Some(top) = top {
            return Value::Definition(top);
        }
        match modules::subpackage(self.view, package, name) {
            Located::File(file) => Value::File(file),
            Located::Package(package) => Value::Package(package),
            Located::Nowhere => Value::Unknown,
        }
    }

    /// The value of a name that the file does not bind.
    fn unbound(&self, name: &str, at: EvalContext<'_>) -> Value {
        if let Some(member) = at.class.and_then(|class| self.class_member(class, name, at)) {
            return Value::Definition(member);
        }
        let key = (at.file.number, at.types);
        match self.names.borrow().get(&key).and_then(|names| names.get(name)) {
            Some(Some(known)) => return known.clone(),
            // A cycle: the name is already being evaluated.
            Some(None) => {
                self.steps.cut_short();
                return Value::Unknown;
            }
            None => {}
        }
        self.cache_name(key, name, None);
        let value = self.outside(name, at);
        if self.is_cacheable(at) {
            self.cache_name(key, name, Some(value.clone()));
        } else if let Some(names) = self.names.borrow_mut().get_mut(&key) {
            names.remove(name);
        }
        value
    }

    fn cache_name(&self, place: (u32, bool), name: &str, value: Option<Value>) {
        self.names.borrow_mut().entry(place).or_default().insert(name.to_owned(), value);
    }

    /// The value of an unbound name that is not a member of an enclosing class.
    fn outside(&self, name: &str, at: EvalContext<'_>) -> Value {
        let mut asked = Vec::new();
        for located in modules::implicit_scopes(self.view, at.file, name) {
            let value = match located {
                Located::File(file) => self.exported_by(&file, name, at, &mut asked),
                Located::Package(package) => self.in_package(&package, name, at),
                Located::Nowhere => continue,
            };
            if !matches!(value, Value::Unknown | Value::External) {
                return value;
            }
        }
        let (located, rest) = modules::root(self.view, at.file, name);
        let module = match located {
            Located::Nowhere => return Value::External,
            Located::File(file) => Value::File(file),
            Located::Package(package) => Value::Package(package),
        };
        rest.iter().fold(module, |outer, name| self.member(&outer, name, at))
    }

    /// The value of a name that may be a member of an enclosing class.
    fn implicit(&self, class: u32, name: &str, at: EvalContext<'_>) -> Value {
        let mut around = at.file.definition(class);
        while let Some(class) = around {
            if let Some(member) = self.class_member(&class, name, at) {
                return Value::Definition(member);
            }
            around = class.definition().parent.and_then(|parent| at.file.definition(parent));
        }
        self.unbound(name, at)
    }

    /// The member of a value.
    pub(crate) fn member(&self, object: &Value, name: &str, at: EvalContext<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = EvalContext { left, ..at };
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
                self.inherited(class, name, at).map_or(Value::Unknown, Value::Definition)
            }
            Value::Definition(one) => self.found_member(one, name, at),
        }
    }

    fn instance_member(&self, of: &Value, name: &str, at: EvalContext<'_>) -> Value {
        match of {
            Value::Definition(class) => {
                self.class_member(class, name, at).map_or(Value::Unknown, Value::Definition)
            }
            Value::External => Value::External,
            _ => Value::Unknown,
        }
    }

    fn found_member(&self, one: &DefinitionRef, name: &str, at: EvalContext<'_>) -> Value {
        let kind = one.definition().kind;
        if kind.is_type() {
            return self.class_member(one, name, at).map_or(Value::Unknown, Value::Definition);
        }
        if let Some(child) = one.file.child(one.index, name, at.types) {
            return Value::Definition(child);
        }
        match kind {
            DefinitionKind::Field
            | DefinitionKind::Variable
            | DefinitionKind::Constant
            | DefinitionKind::Property => {
                match self.dereferenced(Value::Definition(one.clone()), at) {
                    Value::Definition(same) if same.is(one) => Value::Unknown,
                    other => self.member(&other, name, at),
                }
            }
            // Functions and namespaces have no members but their own.
            _ => Value::Unknown,
        }
    }

    /// The result of a call.
    fn called(&self, callee: &Value, at: EvalContext<'_>) -> Value {
        match callee {
            Value::Definition(one) => {
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
                        Value::Definition(inner) if inner.is(one) => Value::Unknown,
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

    /// An instance of a type.
    fn instance(&self, of: Value, at: EvalContext<'_>) -> Value {
        let Some(left) = self.step(at) else { return Value::Unknown };
        let at = EvalContext { left, ..at };
        match of {
            Value::Unknown => Value::Unknown,
            Value::TypeOf(value) => *value,
            Value::Definition(ref one) if one.definition().kind == DefinitionKind::Type => {
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
            Value::Definition(ref one) if !one.definition().kind.is_type() => {
                match self.dereferenced(of.clone(), at) {
                    Value::Definition(same) if same.is(one) => Value::Unknown,
                    other => self.instance(other, at),
                }
            }
            Value::Instance(_) => of,
            of => Value::Instance(Box::new(of)),
        }
    }

    /// An element of a collection: an instance of its last type argument.
    fn element(&self, of: &Value, at: EvalContext<'_>) -> Value {
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

    /// Replaces a variable by its value.
    pub(crate) fn dereferenced(&self, value: Value, at: EvalContext<'_>) -> Value {
        let Value::Definition(one) = &value else { return value };
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
                let at = EvalContext { left, ..at.inside(&one.file).of_value() };
                match self.value(origin, at) {
                    Value::Definition(same) if same.is(one) => Value::Unknown,
                    inner => self.dereferenced(inner, at),
                }
            }
        }
    }
}

fn found(one: Option<DefinitionRef>) -> Value {
    one.map_or(Value::Unknown, Value::Definition)
}

fn instance(of: Value) -> Value {
    match of {
        Value::Unknown => Value::Unknown,
        of => Value::Instance(Box::new(of)),
    }
}

/// Whether it is a generic type from outside the project, such as `Promise<T>`.
fn is_external_generic(of: &Value) -> bool {
    matches!(of, Value::Applied(base, _) if !matches!(base.as_ref(), Value::Definition(_)))
}
