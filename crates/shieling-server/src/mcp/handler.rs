//! Serves one client: passes its calls to the service, and returns results in the protocol's form.

use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ElicitRequest,
    ErrorCode, Implementation, InputRequest, InputRequiredResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use shieling::request::Digest;
use tokio::sync::Semaphore;

use super::{Reporter, resources};
use crate::approval::{PendingQuestion, Person, QuestionChannel, ReceivedAnswer, Reply};
use crate::base64;
use crate::core::Workplace;
use crate::dialect::DialectTool;
use crate::pending::PendingStates;
use crate::repeats::Repeats;
use crate::result::CallResult;
use crate::service::Service;
use crate::toolset::Toolset;
use crate::visible;

/// The largest number of concurrent calls; further calls are refused.
const AT_ONCE: usize = 256;

/// The methods with parameters, and the types of the parameters.
const METHODS: &[(&str, &str)] = &[
    ("tools/call", "`name`, a text, and `arguments`, an object"),
    ("resources/read", "`uri`, a text"),
    ("tools/list", "nothing, or `cursor`, a text"),
    ("resources/list", "nothing, or `cursor`, a text"),
    ("resources/templates/list", "nothing, or `cursor`, a text"),
];

/// The key of the only question in a result.
const QUESTION: &str = "person";

/// Serves one client.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    service: Arc<Service>,
    states: Arc<PendingStates>,
    tools: Arc<Vec<(DialectTool, Tool)>>,
    repeats: Arc<Repeats>,
    instructions: Arc<str>,
    calls: Arc<Semaphore>,
}

impl Handler {
    /// Creates the handler of a client of this workplace, with these tools and instructions.
    pub(super) fn new(workplace: Arc<Workplace>, toolset: &Toolset, instructions: Arc<str>) -> Self {
        let mut offered = toolset.offered(&workplace.core.capabilities().abilities);
        if workplace.core.spill().is_none() {
            offered = offered.without(crate::tools::Tool::ShellOutput);
        }
        Self {
            tools: Arc::new(super::tools(&offered)),
            service: Arc::new(Service::new(workplace, offered, toolset.images())),
            states: Arc::default(),
            repeats: Arc::new(Repeats::new(toolset.repeats())),
            instructions,
            calls: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Returns whether the client's version has no server-to-client requests, but can ask a person.
    fn person(
        &self,
        request: &CallToolRequestParams,
        call: Digest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Person, String> {
        let stateless = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let can_ask = context.client_capabilities().and_then(|can| can.elicitation);
        // A client that names no kind of question means forms, the first kind.
        let forms = can_ask.is_some_and(|can| can.form.is_some() || can.url.is_none());
        if !stateless {
            return Ok(Person::new(if forms {
                QuestionChannel::During(context.peer.clone())
            } else {
                QuestionChannel::None
            }));
        }
        let replied = match &request.request_state {
            None => None,
            Some(state) => {
                let subject = self
                    .states
                    .redeem(state, call, Instant::now())
                    .map_err(|refused| refused.to_string())?;
                let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
                answer.map(|answer| ReceivedAnswer {
                    subject,
                    reply: Reply::read(answer),
                })
            }
        };
        Ok(Person::new(if forms {
            QuestionChannel::Between(replied.into())
        } else {
            QuestionChannel::None
        }))
    }

    /// Returns the question that the client has to ask, with the state to return.
    fn question(&self, pending: PendingQuestion, call: Digest) -> Option<CallToolResponse> {
        let state = self.states.issue(call, pending.subject, Instant::now())?;
        let request = InputRequest::Elicitation(ElicitRequest::new(pending.request));
        let requests = [(QUESTION.to_owned(), request)].into();
        Some(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let name = Implementation::new("shieling", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(can)
            .with_server_info(name)
            .with_instructions(&*self.instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(|(_, tool)| tool.clone()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let found = self.tools.iter().find(|(_, tool)| tool.name == name);
        found.map(|(_, tool)| tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((dialect_tool, _)) = self.tools.iter().find(|(_, tool)| tool.name == request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|(dialect_tool, _)| dialect_tool.name).collect();
            let name: String = request.name.chars().take(100).flat_map(char::escape_debug).collect();
            return Err(ErrorData::invalid_params(
                format!("there is no tool `{name}`; there are {}", names.join(", ")),
                None,
            ));
        };
        let Ok(_running) = self.calls.try_acquire() else {
            return Ok(result(CallResult::failure(format!(
                "{AT_ONCE} calls are under way, which is the limit; nothing was done: try again once one has ended"
            ))));
        };
        let arguments = request.arguments.clone().unwrap_or_default();
        let call = digest(dialect_tool.name, &arguments);
        // A call that brings a person's answer is not a repetition of the one before it.
        if request.request_state.is_none()
            && let Some(refused) = self.repeats.refused(call, Instant::now())
        {
            return Ok(result(refused));
        }
        let person = match self.person(&request, call, &context) {
            Ok(person) => Arc::new(person),
            Err(refused) => return Ok(result(CallResult::failure(refused))),
        };
        let reporter = context
            .meta
            .get_progress_token()
            .map(|token| Reporter::new(context.peer.clone(), token));
        let mut given = tokio::select! {
            // It may be cancelled before it begins.
            biased;
            // The client receives nothing more; what the call has started is ended with it.
            () = context.ct.cancelled() => CallResult::failure("cancelled"),
            given = self.service.call(dialect_tool, arguments, &person, reporter) => given,
        };
        let question = person.pending().and_then(|pending| self.question(pending, call));
        if let Some(question) = question {
            return Ok(question);
        }
        self.repeats.note(dialect_tool.tool, call, &mut given, Instant::now());
        Ok(result(given))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list(&self.service))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    /// Returns errors for what the protocol library does not check: unknown methods, and invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = visible::line(&request.method, 100);
        Err(match METHODS.iter().find(|(name, _)| *name == request.method) {
            Some((_, takes)) => ErrorData::invalid_params(format!("`{method}` takes {takes}"), None),
            None => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method `{method}`"),
                None,
            ),
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self.service.workplace(), &request.uri).await
    }
}

fn result(given: CallResult) -> CallToolResponse {
    let mut content = vec![ContentBlock::text(given.text)];
    content.extend(
        given
            .image
            .map(|image| ContentBlock::image(base64::encode(&image.bytes), image.mime)),
    );
    let mut result = if given.error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = given.structured;
    result.into()
}

/// Returns the digest of a call, which is equal for the same call.
fn digest(tool: &str, arguments: &Map<String, Value>) -> Digest {
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    Digest::of(format!("{tool}\0{arguments}").as_bytes())
}
