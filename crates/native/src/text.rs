//! Text between Python and the engine. For bytes that are not UTF-8, Python has lone surrogates (PEP 383), which Rust's
//! strings cannot hold; the engine has what `plinth_script::lossless` makes of them.

use std::borrow::Cow;

use plinth_script::lossless;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A text of the engine.
pub(crate) struct Text(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        if let Ok(text) = text.to_str() {
            return Ok(Self(lossless::from_bytes(text.as_bytes()).into_owned()));
        }
        let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        Ok(Self(lossless::from_bytes(bytes).into_owned()))
    }
}

impl<'py> IntoPyObject<'py> for Text {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match lossless::to_bytes(&self.0) {
            Cow::Borrowed(_) => Ok(PyString::new(py, &self.0)),
            Cow::Owned(bytes) => {
                let bytes = PyBytes::new(py, &bytes);
                PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogateescape"))
            }
        }
    }
}
