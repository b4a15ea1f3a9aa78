//! The server on standard input and output.

use isolith_types::{Code, Failure};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;

use crate::lines::LineTransport;
use crate::server::Server;

impl Server {
    /// Serves one client until it closes standard input. Running calls get a few more seconds to
    /// answer.
    ///
    /// # Errors
    /// If the client does not speak the protocol, or a pipe fails.
    pub async fn serve_stdio(&self) -> Result<(), Failure> {
        let (read, write) = stdio_pipes();
        let transport = LineTransport::new(read, write);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Code::Failed, format!("cannot serve the client: {error}"))
        };
        let running = match self.clone().serve_with_ct(transport, self.stopping()).await {
            Ok(running) => running,
            // The client disconnected at once.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(failed(&error)),
        };
        running.waiting().await.map_err(|error| failed(&error))?;
        Ok(())
    }
}
