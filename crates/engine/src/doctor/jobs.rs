//! Lists and releases quarantined jobs.

use isolate::{Poison, Quarantine};
use isolith_protocol::{ForgetPoison, GetOverview};
use isolith_types::{Code, Failure, Hint};
use serde::Serialize;

use crate::open::Engine;

/// A job in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantinedJob {
    /// The hash of its input, which identifies it.
    pub id: String,
    /// The role whose workers it killed.
    pub role: String,
    /// The kind of job.
    pub kind: String,
    /// What the last worker died of.
    pub class: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// Minimum number of characters of an id to select a job.
const MIN_ID_CHARS: usize = 4;

impl Engine {
    /// All jobs in quarantine, the newest first.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn quarantined_jobs(&self) -> Result<Vec<QuarantinedJob>, Failure> {
        let poisons = self.ask(GetOverview).await?.poisons;
        let mut jobs: Vec<QuarantinedJob> = poisons
            .into_iter()
            .map(|job| {
                let known: Option<Poison> = serde_json::from_str(&job.poison).ok();
                let unknown = || "unknown".to_owned();
                QuarantinedJob {
                    id: String::from_utf8_lossy(&job.input).into_owned(),
                    role: job.role,
                    kind: known.as_ref().map_or_else(unknown, |poison| poison.kind.clone()),
                    class: known.map_or_else(unknown, |poison| poison.class.to_string()),
                    unix_ms: u64::try_from(job.at).unwrap_or(0),
                }
            })
            .collect();
        jobs.sort_by(|a, b| b.unix_ms.cmp(&a.unix_ms).then_with(|| a.id.cmp(&b.id)));
        Ok(jobs)
    }

    /// Releases the job whose id starts with `id`, or all jobs if `None`. Returns the
    /// released jobs.
    ///
    /// # Errors
    /// `not_found`, `bad_input` if the id is too short or ambiguous; any error of a write.
    pub async fn release_jobs(&self, id: Option<&str>) -> Result<Vec<QuarantinedJob>, Failure> {
        let jobs = self.quarantined_jobs().await?;
        let Some(id) = id else {
            self.write(ForgetPoison { role: None, input: None }, None).await?;
            self.forget(&jobs);
            return Ok(jobs);
        };
        let job = choose(&jobs, id)?;
        let one =
            ForgetPoison { role: Some(job.role.clone()), input: Some(job.id.clone().into_bytes()) };
        self.write(one, None).await?;
        self.forget(std::slice::from_ref(&job));
        Ok(vec![job])
    }

    fn forget(&self, jobs: &[QuarantinedJob]) {
        for job in jobs {
            self.inner.quarantine.remove(&job.role, &job.id);
        }
    }
}

fn choose(jobs: &[QuarantinedJob], id: &str) -> Result<QuarantinedJob, Failure> {
    if id.len() < MIN_ID_CHARS {
        let message =
            format!("{id:?} is too short: give {MIN_ID_CHARS} characters of the id or more");
        return Err(Failure::new(Code::BadInput, message).with_hint(Hint::ListQuarantine));
    }
    let fitting: Vec<&QuarantinedJob> = jobs.iter().filter(|job| job.id.starts_with(id)).collect();
    match fitting.as_slice() {
        [job] => Ok((*job).clone()),
        [] => {
            let message = format!("no job {id:?} is in quarantine");
            Err(Failure::new(Code::NotFound, message).with_hint(Hint::ListQuarantine))
        }
        several => {
            let message = format!("{} jobs in quarantine begin with {id:?}", several.len());
            Err(Failure::new(Code::BadInput, message).with_hint(Hint::ListQuarantine))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_selected_by_a_prefix_of_its_id() {
        let job = |id: &str| QuarantinedJob {
            id: id.to_owned(),
            role: "parse".to_owned(),
            kind: "file".to_owned(),
            class: "crash".to_owned(),
            unix_ms: 1,
        };
        let jobs = [job("abcd1"), job("abcd2"), job("ffff3")];
        assert_eq!(choose(&jobs, "ffff").unwrap(), jobs[2]);
        assert_eq!(choose(&jobs, "abcd2").unwrap(), jobs[1]);
        assert_eq!(choose(&jobs, "abcd").unwrap_err().code, Code::BadInput);
        assert_eq!(choose(&jobs, "0000").unwrap_err().code, Code::NotFound);
        assert_eq!(choose(&jobs, "").unwrap_err().code, Code::BadInput);
    }
}
