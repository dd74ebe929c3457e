//! Parses operands: constants, variables, function calls, CASE.

use super::{Binding, Node, Parser};
use crate::error::ParseError;
use crate::expr::Expr;
use crate::functions::{self, Arity, FUNCTIONS, MAX_ARGUMENTS, Named};
use crate::lexer::{Keyword, Token};
use crate::source::did_you_mean;
use crate::value::Value;

impl<'a> Parser<'a, '_> {
    /// A constant, a variable, a call or a CASE.
    pub(super) fn operand(&mut self) -> Result<Node, ParseError> {
        let (token, start) = (self.token, self.start);
        let constant = match token {
            Token::Int(i) => Value::Int(i),
            Token::Double(d) => Value::Double(d),
            Token::Keyword(Keyword::Null) => Value::Null,
            Token::Keyword(Keyword::True) => Value::Bool(true),
            Token::Keyword(Keyword::False) => Value::Bool(false),
            Token::Variable(name) => {
                self.advance()?;
                return Ok(Node::leaf(self.variable(name, start)));
            }
            Token::Name(name) => {
                self.advance()?;
                return self.call(name, start);
            }
            Token::Keyword(Keyword::Case) => {
                self.advance()?;
                return self.case();
            }
            Token::IntMaxPlusOne => {
                return Err(self
                    .source
                    .syntax_error(start, "integers end at 9223372036854775807"));
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        Ok(Node::leaf(Expr::Constant(constant)))
    }

    fn variable(&mut self, name: &str, start: usize) -> Expr {
        Expr::Variable {
            slot: (self.resolve)(name, start),
            name: name.into(),
        }
    }

    fn call(&mut self, name: &'a str, start: usize) -> Result<Node, ParseError> {
        if self.token != Token::Symbol("(") {
            return Err(match functions::find(name) {
                Some(known) => self.unexpected(&format!("a call, {}", known.usage)),
                None => self
                    .source
                    .error(start, format!("unexpected function name ({name})"))
                    .with_hint(format!("a variable is written :{name}")),
            });
        }
        let Some(known) = functions::find(name) else {
            return Err(self.unknown_function(name, start));
        };
        let open = self.start;
        self.advance()?;
        let mut arguments = Vec::new();
        let mut depth = 0;
        while !self.take_symbol(")")? {
            if !arguments.is_empty() && !self.take_symbol(",")? {
                return Err(self.unclosed(open));
            }
            let argument = self.expression(Binding::Anything)?;
            depth = depth.max(argument.depth);
            arguments.push(argument.expr);
        }
        if !known.arity.accepts(arguments.len()) {
            return Err(self.wrong_count(known, arguments.len(), start));
        }
        if known.arity == Arity::ThenSeed(arguments.len()) {
            arguments.push(self.variable("default_seed", start));
        }
        self.over(Expr::Call(known.function, arguments), [depth])
    }

    fn unknown_function(&self, name: &str, start: usize) -> ParseError {
        let names = || FUNCTIONS.iter().map(|known| known.name);
        let near = did_you_mean(name, names(), |near| format!("{near}()"));
        self.source
            .error(start, format!("unexpected function name ({name})"))
            .with_hint(near.unwrap_or_else(|| {
                format!("functions are {}", names().collect::<Vec<_>>().join(", "))
            }))
    }

    fn wrong_count(&self, known: &Named, count: usize, start: usize) -> ParseError {
        let wrong = match known.arity {
            Arity::AtLeastOne if count == 0 => "at least one argument expected".to_owned(),
            Arity::AtLeastOne => {
                format!("too many function arguments, maximum is {MAX_ARGUMENTS}")
            }
            _ => "unexpected number of arguments".to_owned(),
        };
        self.source
            .error(start, format!("{wrong} ({})", known.name))
            .with_hint(format!("got {count}; write {}", known.usage))
    }

    /// The rest of `CASE WHEN condition THEN value ... [ELSE value] END`.
    fn case(&mut self) -> Result<Node, ParseError> {
        let mut branches = Vec::new();
        let mut depth = 0;
        while self.take_keyword(Keyword::When)? {
            let condition = self.expression(Binding::Anything)?;
            if !self.take_keyword(Keyword::Then)? {
                return Err(self.unexpected("an operator or THEN"));
            }
            let value = self.expression(Binding::Anything)?;
            depth = depth.max(condition.depth).max(value.depth);
            branches.push((condition.expr, value.expr));
        }
        if branches.is_empty() {
            return Err(
                self.unexpected("WHEN, as in CASE WHEN condition THEN value ELSE value END")
            );
        }
        let mut otherwise = Expr::Constant(Value::Null);
        if self.take_keyword(Keyword::Else)? {
            let node = self.expression(Binding::Anything)?;
            depth = depth.max(node.depth);
            otherwise = node.expr;
        }
        if !self.take_keyword(Keyword::End)? {
            return Err(self.unexpected("an operator, WHEN, ELSE or END"));
        }
        self.over(
            Expr::Case {
                branches,
                otherwise: Box::new(otherwise),
            },
            [depth],
        )
    }
}
