//! A statement of a run, and the messages that run it, which are put together before the run.

use plinth_script::{BlockStatement, Keep, Segment, SqlCommand, Symbols, Variables, lossless};
use plinth_wire::{EncodeError, Piece, Template};

use crate::commit_ledger::Recorded;
use crate::protocol::Protocol;

/// A statement, and the messages that run it.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Number within its script.
    pub(crate) index: usize,
    pub(crate) script: usize,
    pub(crate) line: usize,
    pub(crate) text: String,
    /// What the ledger records of it; `None` of most statements, and without a ledger.
    pub(crate) recorded: Option<Recorded>,
    /// What becomes of its results.
    pub(crate) keep: Option<Keep>,
    /// It is `PREPARE TRANSACTION`, which the server answers with `ROLLBACK`, and no error, outside of a transaction block.
    pub(crate) prepares: bool,
    /// Its answer is looked at: it prepares a transaction, or its results are kept.
    pub(crate) is_answer_read: bool,
    /// Slots of the parameters, in the order of the template's holes.
    pub(crate) params: Vec<usize>,
    /// What goes before `run` as long as the connection has not prepared the statement.
    prepare: Vec<u8>,
    run: Template,
}

/// Where a statement is among those of the run, and how it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Number among all statements.
    pub(crate) id: usize,
    pub(crate) script: usize,
    /// Number within the script.
    pub(crate) index: usize,
    pub(crate) protocol: Protocol,
    pub(crate) keeps_ledger: bool,
}

impl Place {
    /// What the ledger records of a statement of this text.
    fn recorded(self, text: &str) -> Option<Recorded> {
        if !self.keeps_ledger {
            return None;
        }
        match BlockStatement::of(text)? {
            BlockStatement::Begin => None,
            BlockStatement::Commit | BlockStatement::Prepare => Some(Recorded::EndOfBlock),
            BlockStatement::CommitPrepared => Some(Recorded::CommitPrepared),
            BlockStatement::RollbackPrepared => Some(Recorded::RollbackPrepared),
        }
    }
}

impl Statement {
    /// A statement of a script.
    pub(crate) fn of_script(place: Place, sql: SqlCommand) -> Result<Self, EncodeError> {
        let (prepare, run, params) = messages(place, &sql)?;
        let prepares = BlockStatement::of(&sql.text) == Some(BlockStatement::Prepare);
        Ok(Self {
            index: place.index,
            script: place.script,
            line: sql.line,
            recorded: place.recorded(&sql.text),
            prepares,
            is_answer_read: prepares || sql.keep.is_some(),
            text: sql.text,
            keep: sql.keep,
            params,
            prepare,
            run,
        })
    }

    /// A statement of a transaction that is compiled in. Its line is its number within the transaction, from 1.
    pub(crate) fn compiled(
        place: Place,
        sql: String,
        parameters: usize,
    ) -> Result<Self, EncodeError> {
        let name = prepared_name(place);
        Ok(Self {
            index: place.index,
            script: place.script,
            line: place.index + 1,
            recorded: place.recorded(&sql),
            keep: None,
            prepares: false,
            is_answer_read: false, // batches read all of their answers
            params: Vec::new(),
            prepare: Template::parse(&name, sql.as_bytes())?,
            run: Template::bind(&name, parameters, false)?,
            text: sql,
        })
    }

    /// Appends the messages that run it; with `prepare`, also those that prepare it.
    #[inline]
    pub(crate) fn write(
        &self,
        protocol: Protocol,
        prepare: bool,
        variables: &Variables,
        symbols: &Symbols,
        out: &mut Vec<u8>,
    ) {
        if prepare {
            out.extend_from_slice(&self.prepare);
        }
        let params = &self.params;
        if protocol == Protocol::Simple {
            self.run.write(out, |hole, out| {
                if !variables.write_text(params[hole], out) {
                    out.push(b':');
                    out.extend_from_slice(&lossless::to_bytes(symbols.name(params[hole])));
                }
                true
            });
        } else {
            let parameter =
                |hole: usize, out: &mut Vec<u8>| variables.write_text(params[hole], out);
            self.run.write(out, parameter);
        }
    }

    /// [`Statement::write`] without `Sync`, for a pipeline; `parameter` appends the text of each, or returns `false` for null.
    #[inline]
    pub(crate) fn write_queued(
        &self,
        prepare: bool,
        out: &mut Vec<u8>,
        parameter: impl FnMut(usize, &mut Vec<u8>) -> bool,
    ) {
        if prepare {
            out.extend_from_slice(&self.prepare);
        }
        self.run.write_unsynced(out, parameter);
    }

    /// Appends the messages that prepare it.
    pub(crate) fn write_prepare(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prepare);
    }
}

/// The name of a statement on the server. The unnamed one is parsed again each time.
fn prepared_name(place: Place) -> String {
    match place.protocol {
        Protocol::Prepared => format!("plinth_{}", place.id),
        _ => String::new(),
    }
}

/// What prepares a statement, what runs it, and the slots of its parameters.
fn messages(
    place: Place,
    sql: &SqlCommand,
) -> Result<(Vec<u8>, Template, Vec<usize>), EncodeError> {
    if place.protocol == Protocol::Simple {
        let texts: Vec<_> = sql
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Text(text) => Some(lossless::to_bytes(text)),
                Segment::Var(_) => None,
            })
            .collect();
        let pieces: Vec<_> = texts
            .iter()
            .map(|text| text.as_deref().map_or(Piece::Parameter, Piece::Text))
            .collect();
        let slots = sql.segments.iter().filter_map(|segment| match segment {
            Segment::Text(_) => None,
            Segment::Var(slot) => Some(*slot),
        });
        return Ok((Vec::new(), Template::simple(&pieces)?, slots.collect()));
    }
    let name = prepared_name(place);
    let prepare = Template::parse(&name, &lossless::to_bytes(&sql.prepared_text))?;
    Ok((
        prepare,
        Template::bind(&name, sql.params.len(), sql.keep.is_some())?,
        sql.params.clone(),
    ))
}
