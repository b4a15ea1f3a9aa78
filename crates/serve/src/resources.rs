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
use crate::text::one_line;
use crate::tools;

const SCHEME: &str = "isolith://";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Drawers per page.
const PAGE_SIZE: u32 = 50;

/// Maximum length of a drawer's name, in characters.
const NAME_CHARS: usize = 60;

/// A parsed resource URI.
#[derive(Debug, PartialEq, Eq)]
enum ResourceUri {
    Status,
    Drawer(String),
    File(String),
}

impl Server {
    /// A page of resources: the status, then drawers, newest first.
    pub(crate) async fn resources(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let offset = offset(cursor).map_err(protocol_error)?;
        let mut resources = Vec::new();
        if offset == 0 {
            let status = Resource::new(format!("{SCHEME}status"), "status")
                .with_description("State of the stores")
                .with_mime_type(JSON);
            resources.push(status);
        }
        let page = DrawerPage { offset, limit: PAGE_SIZE, ..DrawerPage::default() };
        let (drawers, total) = match self.stores().memory().map_err(protocol_error)? {
            Some(engine) => {
                engine.list_drawers(&DrawerFilter::default(), page).await.map_err(protocol_error)?
            }
            None => (Vec::new(), 0),
        };
        let next = offset + drawers.len() as u64;
        resources.extend(drawers.iter().map(drawer_resource));
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = (next < total).then(|| next.to_string());
        Ok(result)
    }

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

    pub(crate) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let unknown =
            || ErrorData::resource_not_found("no such resource", Some(json!({ "uri": uri })));
        let content = match parse_uri(uri).ok_or_else(unknown)? {
            ResourceUri::Status => {
                as_json(&tools::health(self).await.map_err(protocol_error)?, uri)?
            }
            ResourceUri::File(path) => {
                as_json(&tools::file_chunks(self, &path).await.map_err(protocol_error)?, uri)?
            }
            ResourceUri::Drawer(id) => {
                let engine = self.stores().memory().map_err(protocol_error)?.ok_or_else(unknown)?;
                let found = engine.drawers(vec![id]).await.map_err(protocol_error)?.pop().flatten();
                let drawer = found.ok_or_else(unknown)?;
                ResourceContents::text(drawer.text, uri).with_mime_type(TEXT)
            }
        };
        Ok(ReadResourceResult::new(vec![content]))
    }
}

fn drawer_resource(drawer: &Drawer) -> Resource {
    Resource::new(format!("{SCHEME}drawer/{}", drawer.id), one_line(&drawer.text, NAME_CHARS))
        .with_description(format!("{}/{}: untrusted data", drawer.wing, drawer.room))
        .with_mime_type(TEXT)
        .with_size(drawer.text.len() as u64)
}

fn as_json(content: &impl Serialize, uri: &str) -> Result<ResourceContents, ErrorData> {
    let text = serde_json::to_string(content)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ResourceContents::text(text, uri).with_mime_type(JSON))
}

/// A failure as a protocol error, for requests whose results have no place for one.
pub(crate) fn protocol_error(failure: Failure) -> ErrorData {
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

fn parse_uri(uri: &str) -> Option<ResourceUri> {
    let path = uri.strip_prefix(SCHEME)?;
    match path.split_once('/') {
        None if path == "status" => Some(ResourceUri::Status),
        Some(("drawer", id)) if !id.is_empty() => Some(ResourceUri::Drawer(percent_decode(id)?)),
        Some(("file", path)) if !path.is_empty() => Some(ResourceUri::File(percent_decode(path)?)),
        _ => None,
    }
}

/// Decodes percent escapes; `None` if one is invalid or the result is not UTF-8.
fn percent_decode(part: &str) -> Option<String> {
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
    fn uris_are_parsed() {
        let file = |path: &str| Some(ResourceUri::File(path.to_owned()));
        let table = [
            ("isolith://status", Some(ResourceUri::Status)),
            ("isolith://drawer/ab12", Some(ResourceUri::Drawer("ab12".to_owned()))),
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
            assert_eq!(parse_uri(uri), expected, "{uri}");
        }
    }
}
