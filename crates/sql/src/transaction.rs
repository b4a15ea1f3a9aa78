/// The steps of a transaction. There is one savepoint at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// Begins to read: everything is seen as of the first read.
    BeginReading,
    /// Begins to write: other writers wait.
    BeginWriting,
    /// Makes all changes permanent.
    Commit,
    /// Takes all changes back.
    RollBack,
    /// Sets the savepoint.
    Save,
    /// Takes back what was changed since the savepoint, which stays.
    RollBackToSaved,
    /// Removes the savepoint.
    Release,
}

impl Transaction {
    /// What the step does, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Transaction::BeginReading => "begin to read",
            Transaction::BeginWriting => "begin to write",
            Transaction::Commit => "commit",
            Transaction::RollBack => "roll back",
            Transaction::Save => "set a savepoint",
            Transaction::RollBackToSaved => "roll back to the savepoint",
            Transaction::Release => "release the savepoint",
        }
    }
}
