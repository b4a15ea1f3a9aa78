use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_folder::Folder;
use isolith_source::walk::{RulesAbove, WalkError, WalkOptions, WalkPage, WalkPosition, Walker};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use isolith_fault as fault;

/// Lists the files of one root according to its ignore rules, and has access to nothing else.
/// Each job brings the root as a descriptor.
pub struct Walk {
    root: PathBuf,
    token: InWorker,
    /// Open where the last page ended.
    walker: Option<Walker>,
}

/// Lists a page of files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WalkJob {
    /// Identifies the root and its state, so that a root that crashes workers is quarantined.
    pub input: String,
    /// What to list.
    pub options: WalkOptions,
    /// The ignore rules of the folders above the root.
    pub above: Vec<RulesAbove>,
    /// Where the previous page ended.
    pub after: Option<WalkPosition>,
    /// Approximate maximum number of files, folders and problems.
    pub limit: u32,
}

impl Role for Walk {
    const NAME: &'static str = "walk";
    /// The root's path, for the sandbox and for error messages.
    type Settings = PathBuf;
    type Request = WalkJob;
    type Reply = Result<WalkPage, Failure>;

    fn warm_up(root: PathBuf, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { root, token, walker: None })
    }

    fn handle(&mut self, job: WalkJob, context: &Context<'_>) -> Self::Reply {
        fault::point("walk.page", context);
        let mut walker = match self.walker.take() {
            Some(walker)
                if Some(walker.place()) == job.after.as_ref() && *walker.what() == job.options =>
            {
                walker
            }
            _ => self.begin(&job, context.descriptors())?,
        };
        let page = walker.page(job.limit as usize, &|| context.cancelled());
        self.walker = page.next.is_some().then_some(walker);
        Ok(page)
    }

    fn sandbox(root: &PathBuf) -> Sandbox {
        Sandbox::read_only([root.clone()])
    }
}

impl Walk {
    fn begin(&self, job: &WalkJob, descriptors: &[OwnedFd]) -> Result<Walker, Failure> {
        let refuse = |code, error: &dyn std::fmt::Display| {
            Failure::new(code, format!("{}: {error}", self.root.display()))
        };
        let [root] = descriptors else {
            return Err(refuse(Code::Failed, &"the job has no descriptor of the folder"));
        };
        let handle = root.try_clone().map_err(|error| refuse(Code::Failed, &error))?;
        let root = Folder::of_handle(self.root.clone(), Arc::new(handle));
        let walker =
            Walker::begin(root, job.options.clone(), &job.above, job.after.clone(), self.token);
        walker.map_err(|error| match error {
            WalkError::Root(_) => refuse(Code::NotFound, &error),
            WalkError::Store => {
                refuse(Code::ForbiddenPath, &error).with_hint("name the folder of the source code")
            }
        })
    }
}
