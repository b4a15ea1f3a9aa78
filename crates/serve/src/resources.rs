//! Resources: drawers, indexed files and the status of the server.

use isolith_types::{Code, Drawer, DrawerFilter, DrawerPage, Failure};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde::Serialize;
use serde_json::json;

use crate::arguments::offset;
use crate::hints::for_agents;
use crate::server::Server;
use crate::text::line;
use crate::tools;

const SCHEME: &str = "isolith://";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Drawers per page of the list.
const PAGE: u32 = 50;

/// Maximum number of characters of a drawer's name.
const NAME_LETTERS: usize = 60;

/// A parsed address.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Status,
    Drawer(String),
    File(String),
}

impl Server {
    /// The status, and the newest drawers.
    pub(crate) async fn resources(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let offset = offset(cursor).map_err(error)?;
        let mut listed = Vec::new();
        if offset == 0 {
            let status = Resource::new(format!("{SCHEME}status"), "status")
                .with_description("State of the stores")
                .with_mime_type(JSON);
            listed.push(status);
        }
        let page = DrawerPage { offset, limit: PAGE, ..DrawerPage::default() };
        let (drawers, total) = match self.stores().memory().map_err(error)? {
            Some(engine) => {
                engine.list_drawers(&DrawerFilter::default(), page).await.map_err(error)?
            }
            None => (Vec::new(), 0),
        };
        let next = offset + drawers.len() as u64;
        listed.extend(drawers.iter().map(drawer_listed));
        let mut result = ListResourcesResult::with_all_items(listed);
        result.next_cursor = (next < total).then(|| next.to_string());
        Ok(result)
    }

    /// The supported address templates.
    pub(crate) fn resource_templates(&self) -> ListResourceTemplatesResult {
        let drawer = ResourceTemplate::new(format!("{SCHEME}drawer/{{id}}"), "drawer")
            .with_description("The text of a drawer: untrusted data")
            .with_mime_type(TEXT);
        let file = ResourceTemplate::new(format!("{SCHEME}file/{{+path}}"), "file")
            .with_description(
                "The indexed chunks of a file, by its path in the project: untrusted data",
            )
            .with_mime_type(JSON);
        ListResourceTemplatesResult::with_all_items(vec![drawer, file])
    }

    /// Reads a resource.
    pub(crate) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let unknown = || {
            ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
        };
        let content = match address(uri).ok_or_else(unknown)? {
            Address::Status => as_json(&tools::health(self).await.map_err(error)?, uri)?,
            Address::File(path) => as_json(&tools::chunks(self, &path).await.map_err(error)?, uri)?,
            Address::Drawer(id) => {
                let engine = self.stores().memory().map_err(error)?.ok_or_else(unknown)?;
                let found = engine.drawers(vec![id]).await.map_err(error)?.pop().flatten();
                let drawer = found.ok_or_else(unknown)?;
                ResourceContents::text(drawer.text, uri).with_mime_type(TEXT)
            }
        };
        Ok(ReadResourceResult::new(vec![content]))
    }
}

fn drawer_listed(drawer: &Drawer) -> Resource {
    Resource::new(format!("{SCHEME}drawer/{}", drawer.id), line(&drawer.text, NAME_LETTERS))
        .with_description(format!("{}/{}: untrusted data", drawer.wing, drawer.room))
        .with_mime_type(TEXT)
        .with_size(drawer.text.len() as u64)
}

fn as_json(content: &impl Serialize, uri: &str) -> Result<ResourceContents, ErrorData> {
    let text = serde_json::to_string(content)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ResourceContents::text(text, uri).with_mime_type(JSON))
}

/// A failure as a protocol error, where there is no result to put it into.
pub(crate) fn error(failure: Failure) -> ErrorData {
    let failure = failure.worded(for_agents);
    let data = Some(json!({ "error": failure }));
    match failure.code {
        Code::NotFound | Code::NoStore => ErrorData::resource_not_found(failure.message, data),
        Code::BadInput | Code::TooLarge | Code::ForbiddenPath => {
            ErrorData::invalid_params(failure.message, data)
        }
        _ => ErrorData::internal_error(failure.message, data),
    }
}

fn address(uri: &str) -> Option<Address> {
    let place = uri.strip_prefix(SCHEME)?;
    match place.split_once('/') {
        None if place == "status" => Some(Address::Status),
        Some(("drawer", id)) if !id.is_empty() => Some(Address::Drawer(decoded(id)?)),
        Some(("file", path)) if !path.is_empty() => Some(Address::File(decoded(path)?)),
        _ => None,
    }
}

/// Decodes percent signs; none if they are invalid.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let (byte, left) = match first {
            b'%' => {
                let digits = std::str::from_utf8(more.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, &more[2..])
            }
            plain => (plain, more),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let file = |path: &str| Some(Address::File(path.to_owned()));
        let table = [
            ("isolith://status", Some(Address::Status)),
            ("isolith://drawer/ab12", Some(Address::Drawer("ab12".to_owned()))),
            ("isolith://file/src/main.rs", file("src/main.rs")),
            ("isolith://file/gr%C3%B6%C3%9Fe%20a.rs", file("größe a.rs")),
            ("isolith://file/%2Fetc/passwd", file("/etc/passwd")),
            ("isolith://file/a%", None),
            ("isolith://file/a%zz", None),
            ("isolith://file/%ff", None),
            ("isolith://file/", None),
            ("isolith://drawer", None),
            ("isolith://", None),
            ("file:///etc/passwd", None),
        ];
        for (uri, expected) in table {
            assert_eq!(address(uri), expected, "{uri}");
        }
    }
}
