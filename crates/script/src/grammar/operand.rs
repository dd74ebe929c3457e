//! What operators stand between: constants, variables, function calls, CASE.

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
                    .error(
                        start,
                        "9223372036854775808 is out of range for a 64-bit integer",
                    )
                    .with_hint("integers end at 9223372036854775807"));
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
            return Err(self
                .source
                .error(
                    start,
                    format!("\"{name}\" is neither a value nor a function call"),
                )
                .with_hint(match functions::find(name) {
                    Some(known) => format!("write {}", known.usage),
                    None => format!("a variable is written :{name}"),
                }));
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
        let mut error = self
            .source
            .error(start, format!("unknown function \"{name}\""));
        if name.eq_ignore_ascii_case("debug") {
            error.message = "function \"debug\" is not supported".to_owned();
            return error.with_hint("to see a value, SELECT it");
        }
        let names = || FUNCTIONS.iter().map(|known| known.name);
        error.hint = did_you_mean(name, names(), |near| format!("{near}()")).or_else(|| {
            Some(format!(
                "functions are {}",
                names().collect::<Vec<_>>().join(", ")
            ))
        });
        error
    }

    fn wrong_count(&self, known: &Named, count: usize, start: usize) -> ParseError {
        let plural = |n: usize| {
            if n == 1 {
                "1 argument".to_owned()
            } else {
                format!("{n} arguments")
            }
        };
        let takes = match known.arity {
            Arity::Exactly(n) => plural(n),
            Arity::AtLeastOne => format!("1 to {}", plural(MAX_ARGUMENTS)),
            Arity::ThenSeed(n) => format!("{n} or {}", plural(n + 1)),
        };
        self.source
            .error(start, format!("{} takes {takes}, not {count}", known.name))
            .with_hint(format!("write {}", known.usage))
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
            return Err(self
                .unexpected("WHEN")
                .with_hint("write CASE WHEN condition THEN value ELSE value END"));
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
