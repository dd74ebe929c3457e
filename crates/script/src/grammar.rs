//! Tokens to expressions, with the precedences of pgbench's `exprparse.y`, which are PostgreSQL's.

use crate::error::ParseError;
use crate::expr::Expr;
use crate::functions::{self, Arity, FUNCTIONS, Function, MAX_ARGUMENTS, Named};
use crate::lexer::{Keyword, Lexer, Token};
use crate::source::{Source, did_you_mean};
use crate::value::Value;

/// Deepest nesting, so that neither parsing nor evaluating can exhaust a thread's stack.
const MAX_DEPTH: usize = 200;

/// How tightly an operator binds its operands, from OR to the sign of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Anything,
    Or,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Sign,
}

/// An expression, and how deep it nests.
struct Node {
    expr: Expr,
    depth: usize,
}

impl Node {
    fn leaf(expr: Expr) -> Self {
        Self { expr, depth: 1 }
    }
}

/// Gives a variable read at a place its slot.
pub(crate) type Resolve<'r> = dyn FnMut(&str, usize) -> usize + 'r;

/// Parses the expression that begins at `offset` and ends with its line. Yields it and where it ends.
pub(crate) fn parse_expression(
    source: Source<'_>,
    offset: usize,
    resolve: &mut Resolve<'_>,
) -> Result<(Expr, usize), ParseError> {
    let mut lexer = Lexer::new(source, offset);
    let (token, start) = lexer.next()?;
    let mut parser = Parser {
        source,
        lexer,
        token,
        start,
        resolve,
        depth: 0,
    };
    if parser.token == Token::End {
        return Err(source
            .error(offset, "missing expression")
            .with_hint("for example: \\set name random(1, 100)"));
    }
    let node = parser.expression(Binding::Anything)?;
    match parser.token {
        Token::End => Ok((node.expr, parser.lexer.offset())),
        _ => Err(parser.unexpected("an operator or the end of the line")),
    }
}

struct Parser<'a, 'r> {
    source: Source<'a>,
    lexer: Lexer<'a>,
    /// The token to look at, and where it begins.
    token: Token<'a>,
    start: usize,
    resolve: &'r mut Resolve<'r>,
    /// Expressions being parsed within one another.
    depth: usize,
}

/// What an infix operator builds.
enum Infix {
    Call(Function),
    /// With its operands exchanged: `a > b` is `b < a`, and evaluates `b` first.
    Exchanged(Function),
    And,
    Or,
}

fn infix(token: Token<'_>) -> Option<(Binding, Infix)> {
    use Function as F;
    use Infix::{Call, Exchanged};
    Some(match token {
        Token::Keyword(Keyword::Or) => (Binding::Or, Infix::Or),
        Token::Keyword(Keyword::And) => (Binding::And, Infix::And),
        Token::Symbol(symbol) => match symbol {
            "=" => (Binding::Comparison, Call(F::Eq)),
            "<>" | "!=" => (Binding::Comparison, Call(F::Ne)),
            "<" => (Binding::Comparison, Call(F::Lt)),
            "<=" => (Binding::Comparison, Call(F::Le)),
            ">" => (Binding::Comparison, Exchanged(F::Lt)),
            ">=" => (Binding::Comparison, Exchanged(F::Le)),
            "|" => (Binding::Bits, Call(F::BitOr)),
            "&" => (Binding::Bits, Call(F::BitAnd)),
            "#" => (Binding::Bits, Call(F::BitXor)),
            "<<" => (Binding::Bits, Call(F::ShiftLeft)),
            ">>" => (Binding::Bits, Call(F::ShiftRight)),
            "+" => (Binding::Sum, Call(F::Add)),
            "-" => (Binding::Sum, Call(F::Sub)),
            "*" => (Binding::Product, Call(F::Mul)),
            "/" => (Binding::Product, Call(F::Div)),
            "%" => (Binding::Product, Call(F::Mod)),
            _ => return None,
        },
        _ => return None,
    })
}

impl<'a> Parser<'a, '_> {
    fn advance(&mut self) -> Result<(), ParseError> {
        (self.token, self.start) = self.lexer.next()?;
        Ok(())
    }

    fn take_symbol(&mut self, symbol: &'static str) -> Result<bool, ParseError> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Result<bool, ParseError> {
        let found = self.token == Token::Keyword(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// The error of standing before something else than `wanted`.
    fn unexpected(&self, wanted: &str) -> ParseError {
        let found = match self.token {
            Token::End => "the end of the line".to_owned(),
            _ => format!("\"{}\"", &self.source.text[self.start..self.lexer.offset()]),
        };
        self.source
            .error(self.start, format!("expected {wanted}, found {found}"))
    }

    /// Builds a node over others; fails when it nests too deep.
    fn over(
        &self,
        expr: Expr,
        depths: impl IntoIterator<Item = usize>,
    ) -> Result<Node, ParseError> {
        let depth = 1 + depths.into_iter().max().unwrap_or(0);
        self.check_depth(depth)?;
        Ok(Node { expr, depth })
    }

    fn check_depth(&self, depth: usize) -> Result<(), ParseError> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self
            .source
            .error(
                self.start,
                format!("the expression nests deeper than {MAX_DEPTH} operations"),
            )
            .with_hint("split it into several \\set commands"))
    }

    fn expression(&mut self, at_least: Binding) -> Result<Node, ParseError> {
        self.depth += 1;
        self.check_depth(self.depth)?;
        let mut left = self.prefix()?;
        let mut after_comparison = false;
        loop {
            if let Some(node) = self.postfix(&mut left, at_least)? {
                left = node;
                after_comparison = false;
                continue;
            }
            let Some((binding, infix)) = infix(self.token) else {
                break;
            };
            if binding < at_least {
                break;
            }
            if binding == Binding::Comparison && after_comparison {
                return Err(self
                    .source
                    .error(self.start, "comparisons cannot be chained")
                    .with_hint("write a < b AND b < c"));
            }
            after_comparison = binding == Binding::Comparison;
            self.advance()?;
            let right = self.expression(binding.tighter())?;
            left = self.combine(infix, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn combine(&self, infix: Infix, left: Node, right: Node) -> Result<Node, ParseError> {
        let depths = [left.depth, right.depth];
        let expr = match infix {
            Infix::Call(function) => Expr::Call(function, vec![left.expr, right.expr]),
            Infix::Exchanged(function) => Expr::Call(function, vec![right.expr, left.expr]),
            Infix::And => Expr::And(Box::new(left.expr), Box::new(right.expr)),
            Infix::Or => Expr::Or(Box::new(left.expr), Box::new(right.expr)),
        };
        self.over(expr, depths)
    }

    /// `IS [NOT] constant`, `ISNULL`, `NOTNULL` after `left`, which is then taken.
    fn postfix(&mut self, left: &mut Node, at_least: Binding) -> Result<Option<Node>, ParseError> {
        if Binding::Is < at_least {
            return Ok(None);
        }
        let (negated, value) = if self.take_keyword(Keyword::IsNull)? {
            (false, Value::Null)
        } else if self.take_keyword(Keyword::NotNull)? {
            (true, Value::Null)
        } else if self.take_keyword(Keyword::Is)? {
            (self.take_keyword(Keyword::Not)?, self.is_constant()?)
        } else {
            return Ok(None);
        };
        let tested = std::mem::replace(left, Node::leaf(Expr::Constant(Value::Null)));
        let is = Expr::Call(Function::Is, vec![tested.expr, Expr::Constant(value)]);
        let expr = if negated {
            Expr::Call(Function::Not, vec![is])
        } else {
            is
        };
        self.over(expr, [tested.depth + usize::from(negated)])
            .map(Some)
    }

    fn is_constant(&mut self) -> Result<Value, ParseError> {
        for (keyword, value) in [
            (Keyword::Null, Value::Null),
            (Keyword::True, Value::Bool(true)),
            (Keyword::False, Value::Bool(false)),
        ] {
            if self.take_keyword(keyword)? {
                return Ok(value);
            }
        }
        Err(self.unexpected("NULL, TRUE or FALSE"))
    }

    fn prefix(&mut self) -> Result<Node, ParseError> {
        let (token, start) = (self.token, self.start);
        match token {
            Token::Symbol("+") => {
                self.advance()?;
                self.expression(Binding::Sign)
            }
            Token::Symbol("-") => {
                self.advance()?;
                if self.token == Token::IntMaxPlusOne {
                    self.advance()?;
                    return Ok(Node::leaf(Expr::Constant(Value::Int(i64::MIN))));
                }
                let zero = Node::leaf(Expr::Constant(Value::Int(0)));
                let operand = self.expression(Binding::Sign)?;
                self.combine(Infix::Call(Function::Sub), zero, operand)
            }
            Token::Symbol("~") => {
                self.advance()?;
                let ones = Node::leaf(Expr::Constant(Value::Int(-1)));
                let operand = self.expression(Binding::Bits.tighter())?;
                self.combine(Infix::Call(Function::BitXor), ones, operand)
            }
            Token::Keyword(Keyword::Not) => {
                self.advance()?;
                let operand = self.expression(Binding::Not)?;
                self.over(
                    Expr::Call(Function::Not, vec![operand.expr]),
                    [operand.depth],
                )
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.expression(Binding::Anything)?;
                if !self.take_symbol(")")? {
                    return Err(self.unclosed(start));
                }
                Ok(inner)
            }
            _ => self.operand(),
        }
    }

    fn unclosed(&self, parenthesis: usize) -> ParseError {
        let (line, column) = self.source.position(parenthesis);
        self.unexpected("an operator or \")\"").with_hint(format!(
            "the parenthesis was opened at line {line}, column {column}"
        ))
    }

    fn operand(&mut self) -> Result<Node, ParseError> {
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

impl Binding {
    /// What the right operand of a left-associative operator has to bind at least.
    fn tighter(self) -> Self {
        match self {
            Self::Anything => Self::Or,
            Self::Or => Self::And,
            Self::And => Self::Not,
            Self::Not => Self::Is,
            Self::Is => Self::Comparison,
            Self::Comparison => Self::Bits,
            Self::Bits => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Sign => Self::Sign,
        }
    }
}
