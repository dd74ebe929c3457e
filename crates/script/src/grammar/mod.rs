//! Parses tokens into expressions, with the precedences of pgbench's `exprparse.y`, which are PostgreSQL's.

mod operand;

use crate::error::ParseError;
use crate::expr::Expr;
use crate::functions::Function;
use crate::lexer::{Keyword, Lexer, Token};
use crate::prng::Prng;
use crate::source::Source;
use crate::value::Value;
use crate::variables::{Symbols, Variables};

/// Maximum nesting of brackets, calls and signs, and maximum length of a chain of operators, so that neither parsing
/// nor evaluating can exhaust a thread's stack.
const MAX_NESTING: usize = 100;
const MAX_DEPTH: usize = 1000;

/// The precedence of an operator, from OR to the sign of a number.
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

/// An expression and its nesting depth.
struct Node {
    expr: Expr,
    depth: usize,
}

impl Node {
    fn leaf(expr: Expr) -> Self {
        Self { expr, depth: 1 }
    }
}

/// Resolves a variable that is read at an offset to its slot.
pub(crate) type Resolve<'r> = dyn FnMut(&str, usize) -> usize + 'r;

/// Parses the expression that begins at `offset` and ends with its line. Returns it and the offset of its end.
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
        return Err(source.syntax_error(start, "an expression is missing, such as random(1, 100)"));
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
    /// The current token, and where it begins.
    token: Token<'a>,
    start: usize,
    resolve: &'r mut Resolve<'r>,
    /// Current nesting depth of expressions.
    depth: usize,
}

/// The expression that an infix operator builds.
enum Infix {
    Call(Function),
    /// With swapped operands: `a > b` is `b < a`, and evaluates `b` first.
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

    /// The error of finding something other than `wanted`.
    fn unexpected(&self, wanted: &str) -> ParseError {
        let found = match self.token {
            Token::End => "the end of the line".to_owned(),
            _ => format!("\"{}\"", &self.source.text[self.start..self.lexer.offset()]),
        };
        self.source
            .syntax_error(self.start, format!("expected {wanted}, found {found}"))
    }

    /// Builds a node with operands; fails when it is nested too deep.
    fn over(
        &self,
        expr: Expr,
        depths: impl IntoIterator<Item = usize>,
    ) -> Result<Node, ParseError> {
        let depth = 1 + depths.into_iter().max().unwrap_or(0);
        self.check_depth(depth, MAX_DEPTH)?;
        Ok(Node { expr, depth })
    }

    fn check_depth(&self, depth: usize, limit: usize) -> Result<(), ParseError> {
        if depth <= limit {
            return Ok(());
        }
        let message = format!("expression is nested deeper than {limit} operations");
        Err(self
            .source
            .error(self.start, message)
            .with_hint("split it into several \\set commands"))
    }

    fn expression(&mut self, at_least: Binding) -> Result<Node, ParseError> {
        self.depth += 1;
        self.check_depth(self.depth, MAX_NESTING)?;
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
                return Err(self.source.syntax_error(
                    self.start,
                    "comparisons cannot be chained; write a < b AND b < c",
                ));
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
            Infix::Call(function) => operation(function, left.expr, right.expr),
            Infix::Exchanged(function) => operation(function, right.expr, left.expr),
            Infix::And => Expr::And(Box::new(left.expr), Box::new(right.expr)),
            Infix::Or => Expr::Or(Box::new(left.expr), Box::new(right.expr)),
        };
        self.over(expr, depths)
    }

    /// `IS [NOT] constant`, `ISNULL`, `NOTNULL` after `left`, which it then consumes.
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
        self.unexpected(&format!(
            "an operator or \")\" for the parenthesis at line {line}, column {column}"
        ))
    }
}

/// An operator with its operands; if these are constants and it has a value, that value, so that -5000 is not computed
/// each time.
fn operation(function: Function, left: Expr, right: Expr) -> Expr {
    let is_constant = matches!((&left, &right), (Expr::Constant(_), Expr::Constant(_)));
    let call = Expr::Call(function, vec![left, right]);
    if !is_constant {
        return call;
    }
    // There are no variables to read, and operators draw no random numbers.
    match call.eval(&Variables::new(&Symbols::new()), &mut Prng::seeded(0)) {
        Ok(value) => Expr::Constant(value),
        Err(_) => call,
    }
}

impl Binding {
    /// The minimum binding power of the right operand of a left-associative operator.
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
