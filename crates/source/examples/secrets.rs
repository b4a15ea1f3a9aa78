//! Which files of some folders are taken for secrets: the rate of false alarms.
//! `cargo run -p isolith-source --example secrets -- FOLDER...`

use std::path::Path;

use isolate_types::InWorker;
use isolith_folder::Folder;
use isolith_source::secrets::{Secrets, is_secret_name};
use isolith_source::walk::{WalkOptions, Walker, read};

fn main() {
    let secrets = Secrets::new();
    let (mut files, mut named, mut found) = (0_u64, 0_u64, 0_u64);
    for folder in std::env::args().skip(1) {
        let folder = Path::new(&folder);
        let Ok(root) = Folder::resolve(folder) else { continue };
        let what = WalkOptions {
            under: String::new(),
            largest_file: 1 << 20,
            include_secrets: false,
            folders: false,
            except: Vec::new(),
            languages: Vec::new(),
            repository: None,
        };
        let Ok(walker_root) = Folder::resolve(folder) else { continue };
        let token = InWorker::in_process();
        let Ok(mut walker) = Walker::begin(walker_root, what, &[], None, token) else { continue };
        let mut walked = walker.page(usize::MAX, &|| false);
        while walked.next.take().is_some() {
            let more = walker.page(usize::MAX, &|| false);
            walked.files.extend(more.files);
            walked.left_out.extend(more.left_out);
            walked.next = more.next;
        }
        for left_out in &walked.left_out {
            let name = left_out.path.rsplit('/').next().unwrap_or_default();
            if is_secret_name(name) {
                named += 1;
                println!("{}/{}: by its name", folder.display(), left_out.path);
            }
        }
        for file in &walked.files {
            let Ok(contents) = read(&root, &file.path, 1 << 20) else { continue };
            files += 1;
            let text = String::from_utf8_lossy(&contents.bytes);
            if let Some(finding) = secrets.find(&file.path, &text) {
                found += 1;
                let (rule, line) = (finding.rule, finding.line);
                println!("{}/{}:{line}: {rule}", folder.display(), file.path);
            }
        }
    }
    println!("{files} files read: {found} with a secret in them; {named} more by their names");
}
