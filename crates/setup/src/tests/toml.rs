use super::*;

const TABLE: &str = "[mcp_servers.isolith]\ncommand = \"/bin/isolith\"\nargs = [\"mcp\"]";

#[test]
fn an_entry_is_appended() {
    let table = [
        ("", TABLE.to_owned()),
        ("\n", format!("\n\n{TABLE}\n")),
        ("a = 1", format!("a = 1\n\n{TABLE}")),
        ("a = 1\n", format!("a = 1\n\n{TABLE}\n")),
        ("a = 1\n\n\n", format!("a = 1\n\n\n\n{TABLE}\n")),
        ("a = 1\r\n", format!("a = 1\r\n\r\n{}\r\n", TABLE.replace('\n', "\r\n"))),
        ("a = 1\r\nb = 2", format!("a = 1\r\nb = 2\r\n\r\n{}", TABLE.replace('\n', "\r\n"))),
        ("# all\n# commented", format!("# all\n# commented\n\n{TABLE}")),
        (
            "[mcp_servers.a]\ncommand = 'a'\n\n[z]\nb = '''\n[x]\n'''\n# end\n",
            format!("[mcp_servers.a]\ncommand = 'a'\n\n[z]\nb = '''\n[x]\n'''\n# end\n\n{TABLE}\n"),
        ),
        (
            "[mcp_servers]\na = { command = 'a' }\n",
            format!("[mcp_servers]\na = {{ command = 'a' }}\n\n{TABLE}\n"),
        ),
        ("mcp_servers.a.command = 'a'\n", format!("mcp_servers.a.command = 'a'\n\n{TABLE}\n")),
    ];
    for (before, after) in table {
        assert_eq!(registered(TOML, before), after, "{before:?}");
    }
    assert_eq!(register(TOML, None, &entry()).unwrap().text, Some(format!("{TABLE}\n")));
}

#[test]
fn an_entry_is_removed_wherever_it_is() {
    let table = [
        ("[mcp_servers.isolith]\ncommand = 'x'\n\n# about b\n[b]\n", "\n# about b\n[b]\n"),
        (
            "a = 1\n\n# ours\n[mcp_servers.isolith] # it\n# why\ncommand = 'x' # y\n\n[b]\n",
            "a = 1\n\n# ours\n\n[b]\n",
        ),
        (
            "a = 1\n\n[mcp_servers.isolith]\nargs = [\n  'mcp',\n]\n\n[b]\nc = 1\n\n[mcp_servers.isolith.tools.x]\nmode = 'auto'\n",
            "a = 1\n\n[b]\nc = 1\n",
        ),
        ("[mcp_servers.isolith.env]\nA = '1'\n", ""),
        ("a = 1\n[mcp_servers.isolith]\nb = 1\n[mcp_servers.isolith.env]\nA = '1'", "a = 1"),
        ("[mcp_servers.isolith]\nenv.A = '1'\nenv.B = '2'\n[c]\n", "[c]\n"),
        (
            "[mcp_servers]\na = {}\nisolith = { command = 'x' } # it\nb = {}\n",
            "[mcp_servers]\na = {}\nb = {}\n",
        ),
        (
            "[mcp_servers]\nisolith.command = 'x'\nb = {}\nisolith.args = []",
            "[mcp_servers]\nb = {}",
        ),
        ("mcp_servers.isolith.command = 'x'\nb = 1\n", "b = 1\n"),
        ("[[mcp_servers.isolith]]\na = 1\n\n[[mcp_servers.isolith]]\na = 2\n[b]\n", "[b]\n"),
        ("[ \"mcp_servers\" . 'isolith' ]\ncommand = 'x'\n[b]\n", "[b]\n"),
    ];
    for (before, after) in table {
        assert_eq!(unregistered(TOML, before), after, "{before}");
    }
    for untouched in ["", "a = 1", "[isolith]", "[mcp_servers]"] {
        let change = unregister(TOML, Some(untouched)).unwrap();
        assert_eq!(change, ConfigChange::unchanged(EntryAction::None), "{untouched}");
    }
}

#[test]
fn another_entry_with_the_name_is_replaced() {
    let table = [
        // Other keys are kept.
        (
            "[mcp_servers.isolith]\ncommand = '/old' # it\nargs = [\n  'mcp',\n  'x',\n]\nenabled = true\n[mcp_servers.isolith.env]\nA = '1'\n",
            "[mcp_servers.isolith]\ncommand = \"/bin/isolith\" # it\nargs = [\"mcp\"]\nenabled = true\n[mcp_servers.isolith.env]\nA = '1'\n".to_owned(),
        ),
        (
            "[mcp_servers]\nisolith = { command = 'x', args = ['mcp'] }\nb = {}\n",
            "[mcp_servers]\nisolith = { command = \"/bin/isolith\", args = ['mcp'] }\nb = {}\n".to_owned(),
        ),
        // An entry that lacks a key is replaced as a whole.
        (
            "[mcp_servers.isolith]\nurl = 'http://localhost/mcp'\n\n[b]\n",
            format!("\n[b]\n\n{TABLE}\n"),
        ),
        ("[mcp_servers]\nisolith = 1\n", format!("[mcp_servers]\n\n{TABLE}\n")),
    ];
    for (before, after) in table {
        assert_eq!(updated(TOML, before), after, "{before}");
    }
}

#[test]
fn an_equal_entry_is_left_alone() {
    let text =
        "[mcp_servers.isolith]\nargs = ['''mcp''']\ncommand = '/bin/isolith'\nenabled = false";
    let change = register(TOML, Some(text), &entry()).unwrap();
    assert_eq!(change, ConfigChange::unchanged(EntryAction::Unchanged));
}

#[test]
fn invalid_files_are_refused() {
    let wrong = |found| EditError::WrongType {
        location: "\"mcp_servers\"".to_owned(),
        expected: "a table",
        found,
    };
    assert_eq!(refused(TOML, "mcp_servers = []"), wrong("array"));
    assert_eq!(refused(TOML, "mcp_servers = {}"), wrong("an inline table"));
    assert_eq!(refused(TOML, "[[mcp_servers]]"), wrong("an array of tables"));
    let deep = format!("a = {}", "[".repeat(100_000));
    for text in ["a =", "= 1", "[a", "a = 1\na = 2", "{}", &deep] {
        assert!(matches!(refused(TOML, text), EditError::Syntax { language: "TOML", .. }));
    }
    let reason = refused(TOML, "a = 1\nb =\n").to_string();
    assert!(reason.contains("line 2"), "{reason}");
}
