//! What agents do with files: judged, asked about, done and recorded, as commands are.

use super::Shieling;
use crate::files::{FileAnswer, FileAsk, FilesError};

impl Shieling {
    /// Does what is asked of files.
    ///
    /// # Errors
    /// [`FilesError`]; nothing has changed then.
    /// # Cancel safety
    /// Dropping the future before it is done leaves each file as it was, or as it was to be.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn file(&self, ask: FileAsk) -> Result<FileAnswer, FilesError> {
        let _ = ask;
        Err(FilesError::Fault("not built yet".to_owned()))
    }
}
