//! Paths that a query mentions, such as those in a traceback.

/// Only the first paths of a long traceback count.
const MAX_PATHS: usize = 64;

/// A path matches by its last components; a file name alone is too common.
const MIN_COMPONENTS: usize = 2;

/// Paths of files in a query, each as its components from last to first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MentionedPaths(Vec<Vec<String>>);

impl MentionedPaths {
    /// Finds `lib/app/file.py`, `C:\app\file.py:12` and the like.
    pub(crate) fn parse(text: &str) -> Self {
        let is_path_char = |c: char| c.is_alphanumeric() || "/\\._-+@".contains(c);
        let tokens = text.split(|c: char| !is_path_char(c));
        let mut paths: Vec<Vec<String>> = Vec::new();
        for token in tokens {
            let components: Vec<&str> = token
                .trim_end_matches('.')
                .rsplit(['/', '\\'])
                .filter(|it| !it.is_empty())
                .collect();
            let has_extension = components.first().is_some_and(|name| {
                name.rsplit_once('.').is_some_and(|(stem, ending)| {
                    !stem.is_empty() && ending.starts_with(|c: char| c.is_ascii_alphabetic())
                })
            });
            if !has_extension || components.len() < MIN_COMPONENTS {
                continue;
            }
            let path: Vec<String> = components.into_iter().map(str::to_owned).collect();
            if !paths.contains(&path) {
                paths.push(path);
            }
            if paths.len() == MAX_PATHS {
                break;
            }
        }
        Self(paths)
    }

    /// Whether one of them ends like `path`, in at least two components.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.iter().any(|mentioned| {
            let components = path.rsplit('/').filter(|it| !it.is_empty());
            let equal = components.zip(mentioned).take_while(|(a, b)| a == b).count();
            equal >= MIN_COMPONENTS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracebacks_name_files() {
        let text = r#"Traceback (most recent call last):
          File "/usr/lib/python3/site-packages/astropy/wcs/wcs.py", line 12, in pix2world
        ~/code/astropy/io/fits/column.py in _convert(self)
        C:\src\app\main.rs:40:2
        see docs/index, 1/2 and e.g. a/b."#;
        let paths = MentionedPaths::parse(text);
        for (path, expected) in [
            ("astropy/wcs/wcs.py", true),
            ("wcs/wcs.py", true),
            ("astropy/io/fits/column.py", true),
            ("src/app/main.rs", true),
            ("other/wcs.py", false),
            ("wcs.py", false),
            ("docs/index", false),
            ("", false),
        ] {
            assert_eq!(paths.matches(path), expected, "{path}");
        }
    }

    #[test]
    fn plain_text_has_no_paths() {
        for text in ["", "and/or", "file.py", "http error 404.", "a/.b", "x/1.5", "..//.."] {
            assert_eq!(MentionedPaths::parse(text), MentionedPaths::default(), "{text}");
        }
    }
}
