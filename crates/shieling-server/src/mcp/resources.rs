//! The resources of the server: whole outputs and the logs of jobs, in parts.
//!
//! ```text
//! shieling://output/ID?stream=stdout&cursor=0
//! shieling://job/ID?cursor=0
//! ```
//!
//! The `_meta` of a part contains the address of the next one as `shieling/next`.

use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;
use shieling::session::{JobId, ViewRequest};

use crate::arguments::Stream;
use crate::core::Workplace;
use crate::service::{self, Service};
use crate::visible;

/// The largest part, in bytes.
const PIECE: u64 = 65_536;

/// The largest number of jobs in a listing; the newest are listed.
const LISTED: usize = 200;

pub(super) fn list(service: &Service) -> ListResourcesResult {
    let outputs = service.outputs().into_iter().map(|whole| {
        Resource::new(
            format!("shieling://output/{}", whole.id),
            format!("whole output {}", whole.id),
        )
        .with_description(whole.command)
        .with_mime_type("text/plain")
    });
    let jobs = service.workplace().core.list().jobs;
    let newest = jobs.iter().rev().take(LISTED);
    let resources = newest.map(|job| {
        Resource::new(format!("shieling://job/{}", job.job), format!("log of job {}", job.job))
            .with_description(visible::line(&job.command, 200))
            .with_mime_type("text/plain")
    });
    ListResourcesResult::with_all_items(resources.chain(outputs).collect())
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let output = ResourceTemplate::new("shieling://output/{output_id}{?stream,cursor}", "whole output")
        .with_description("The whole output of a command whose outcome left some out, a piece from `cursor` on; `stream` is stdout or stderr.")
        .with_mime_type("text/plain");
    let job = ResourceTemplate::new("shieling://job/{job}{?cursor}", "log of a job")
        .with_description("What a job has written, as far as it is kept, a piece from `cursor` on.")
        .with_mime_type("text/plain");
    ListResourceTemplatesResult::with_all_items(vec![output, job])
}

pub(super) async fn read(workplace: &Workplace, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let unknown = |why: &str| ErrorData::resource_not_found(why.to_owned(), Some(json!({"uri": uri})));
    let address = Address::read(uri).map_err(unknown)?;
    let (text, next) = match address.of {
        ResourceKind::Output(stream) => {
            let piece = service::piece(workplace, address.id, stream, address.cursor, PIECE);
            let piece = piece.map_err(|why| unknown(&why))?;
            let stream = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            let next = format!("shieling://output/{}?stream={stream}&cursor={}", address.id, piece.next);
            (piece.text, (!piece.end).then_some(next))
        }
        ResourceKind::Job => log(workplace, address.id, address.cursor)
            .await
            .map_err(|why| unknown(&why))?,
    };
    let mut contents = ResourceContents::text(text, uri).with_mime_type("text/plain");
    if let Some(next) = next {
        let mut meta = MetaObject::new();
        meta.insert("shieling/next".to_owned(), next.into());
        contents = contents.with_meta(meta);
    }
    Ok(ReadResourceResult::new(vec![contents]).into())
}

/// Reads a job's output from the cursor on. Returns it with the cursor of the next part.
async fn log(workplace: &Workplace, id: &str, cursor: u64) -> Result<(String, Option<String>), String> {
    let job: JobId = id
        .parse()
        .map_err(|error: shieling::session::IdError| error.to_string())?;
    let ask = ViewRequest {
        cursor: Some(cursor),
        ..ViewRequest::new(job)
    };
    let view = workplace.core.view(ask).await.map_err(|error| error.to_string())?;
    let mut text = match view.missed_bytes {
        0 => String::new(),
        missed => match &view.outcome.output_id {
            Some(id) => format!("[{missed} bytes before these are in shieling://output/{id}]\n"),
            None => format!("[{missed} bytes before these are no longer kept]\n"),
        },
    };
    text.push_str(&view.outcome.stdout);
    text.push_str(&view.outcome.stderr);
    let next = (view.cursor > cursor).then(|| format!("shieling://job/{id}?cursor={}", view.cursor));
    Ok((text, next))
}

/// The kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourceKind {
    Output(Stream),
    Job,
}

#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    of: ResourceKind,
    id: &'a str,
    cursor: u64,
}

impl<'a> Address<'a> {
    fn read(uri: &'a str) -> Result<Self, &'static str> {
        let unknown = "resources are shieling://output/ID?stream=stdout&cursor=0 and shieling://job/ID?cursor=0";
        let path = uri.strip_prefix("shieling://").ok_or(unknown)?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (kind, id) = path.split_once('/').ok_or(unknown)?;
        let (mut stream, mut cursor) = (Stream::Stdout, 0);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match (kind, part.split_once('=')) {
                ("output", Some(("stream", "stdout"))) => stream = Stream::Stdout,
                ("output", Some(("stream", "stderr"))) => stream = Stream::Stderr,
                (_, Some(("cursor", number))) => cursor = number.parse().map_err(|_| unknown)?,
                _ => return Err(unknown),
            }
        }
        let of = match kind {
            "output" => ResourceKind::Output(stream),
            "job" => ResourceKind::Job,
            _ => return Err(unknown),
        };
        Ok(Self { of, id, cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_piece() {
        let read = |uri| {
            Address::read(uri)
                .ok()
                .map(|address| (address.of, address.id.to_owned(), address.cursor))
        };
        assert_eq!(
            read("shieling://output/ab?stream=stderr&cursor=7"),
            Some((ResourceKind::Output(Stream::Stderr), "ab".to_owned(), 7))
        );
        assert_eq!(read("shieling://job/j1"), Some((ResourceKind::Job, "j1".to_owned(), 0)));
        for wrong in [
            "",
            "file:///etc/passwd",
            "shieling://",
            "shieling://other/x",
            "shieling://job/j1?cursor=-1",
            "shieling://job/j1?stream=stderr",
            "shieling://output/ab?stream=both",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
