//! The official client, in both lifecycles: what it reads is what the protocol says.

use std::sync::Arc;

use rmcp::ClientLifecycleMode;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::serve_client_with_lifecycle;
use serde_json::json;
use shieling_server::{Dialect, Server};

use crate::fake::Fake;
use crate::yes::Yes;

#[tokio::test]
async fn the_official_client_lists_calls_and_approves_in_both_lifecycles() {
    let modern = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        let fake = Arc::new(Fake::new());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = Server::new(fake.workplace(), Dialect::default(), "Work well.");
        let serving = tokio::spawn(server.serve(read, write, std::future::pending()));
        let person = Yes::default();
        let mut client = serve_client_with_lifecycle(person.clone(), ours, lifecycle)
            .await
            .expect("it is served");

        let tools = client.list_all_tools().await.expect("they are listed");
        assert_eq!(tools.len(), 19);
        let params = |command: &str| {
            let arguments = json!({"command": command}).as_object().expect("an object").clone();
            CallToolRequestParams::new("shell").with_arguments(arguments)
        };
        let plain = client.call_tool(params("ls")).await.expect("it is called");
        assert_eq!(plain.structured_content.expect("an outcome")["stdout"], "ls\n");
        let approved = client.call_tool(params("ask nicely")).await.expect("it is called");
        assert_eq!(approved.structured_content.expect("an outcome")["status"], "exited");
        let asked = person.asked();
        assert!(asked.len() == 1 && asked[0].contains("ask nicely"), "{asked:?}");

        client.close().await.expect("it closes");
        serving.await.expect("no panic").expect("it ends well");
    }
}
