//! A person behind the official client who says yes.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    Implementation,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;

/// Says yes, and remembers to what.
#[derive(Clone, Default)]
pub(crate) struct Yes(Arc<Mutex<Vec<String>>>);

impl Yes {
    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").clone()
    }
}

impl ClientHandler for Yes {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(can, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.0.lock().expect("not poisoned").push(message);
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"decision": "yes"})))
    }
}
