use crate::{Connection, Error, Kind, OptionalExtension, ToSqlOutput, Transaction, Value, params};

fn database() -> rusqlite::Connection {
    let db = rusqlite::Connection::open_in_memory().unwrap();
    let sql: &dyn Connection = &db;
    sql.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT").unwrap();
    db
}

fn rows(db: &dyn Connection) -> Vec<(i64, String)> {
    let mut statement = db.prepare_cached("SELECT n, text FROM t ORDER BY n").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get("text")?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn rows_are_written_and_read() {
    let db = database();
    let db: &dyn Connection = &db;
    let mut insert = db.prepare_cached("INSERT INTO t VALUES (?1, ?2)").unwrap();
    assert_eq!(insert.execute(params![1, "one"]).unwrap(), 1);
    insert.bind_one(1, ToSqlOutput::Owned(Value::Integer(2))).unwrap();
    insert.bind_one(2, ToSqlOutput::Owned(Value::Text("two".to_owned()))).unwrap();
    insert.execute_bound().unwrap();
    assert_eq!(rows(db), [(1, "one".to_owned()), (2, "two".to_owned())]);
    let find = "SELECT text FROM t WHERE n = ?1";
    let text = |n: i64| db.query_row(find, [n], |row| row.get::<_, String>(0)).optional();
    assert_eq!(text(2).unwrap().as_deref(), Some("two"));
    assert_eq!(text(3).unwrap(), None);
    assert!(db.prepare(find).unwrap().exists([1]).unwrap());
}

#[test]
fn failures_have_kinds() {
    let db = database();
    let db: &dyn Connection = &db;
    let insert = |n: i64, text: Option<&str>| {
        db.execute("INSERT INTO t VALUES (?1, ?2)", params![n, text]).unwrap_err()
    };
    let twice = db.execute("INSERT INTO t VALUES (1, 'a')", []).map(|_| insert(1, Some("b")));
    for error in [twice.unwrap(), insert(2, None)] {
        assert!(matches!(error, Error::Database { kind: Kind::Constraint, .. }), "{error:?}");
    }
    let wrong = db.query_row("SELECT text FROM t", [], |row| row.get::<_, i64>(0)).unwrap_err();
    assert!(matches!(wrong, Error::Value(_)), "{wrong:?}");
    let error = db.execute("DELETE FROM t WHERE n = ?1", []).unwrap_err();
    assert!(matches!(error, Error::WrongParameters { wanted: 1, given: 0 }), "{error:?}");
    let error = db.prepare("nonsense").unwrap_err();
    assert!(matches!(error, Error::Database { kind: Kind::Other, .. }), "{error:?}");
}

#[test]
fn transactions_are_taken_back_whole_or_in_part() {
    let db = database();
    let db: &dyn Connection = &db;
    let run = |steps: &[Transaction]| steps.iter().for_each(|step| db.transact(*step).unwrap());
    let insert = |n: i64| db.execute("INSERT INTO t VALUES (?1, 'x')", [n]).unwrap();
    run(&[Transaction::BeginWriting]);
    insert(1);
    run(&[Transaction::Save]);
    insert(2);
    run(&[Transaction::RollBackToSaved, Transaction::Release]);
    assert!(db.is_in_transaction());
    run(&[Transaction::Commit, Transaction::BeginWriting]);
    insert(3);
    run(&[Transaction::RollBack]);
    assert!(!db.is_in_transaction());
    assert_eq!(rows(db), [(1, "x".to_owned())]);
}
