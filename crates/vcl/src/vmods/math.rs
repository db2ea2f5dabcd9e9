//! VMOD `math`: functions and constants of C's `math.h`, as in Varnish 9. They are the crate
//! `libm`'s, so results never depend on the machine. NaN and infinity are values; converting them
//! to a string fails.

mod format;

use crate::failure::ProgramFailure;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{ArgumentType, Call, Function, Module, Parameter};
use crate::vmods::args::{Args, number, owned, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "math",
    about: "Functions and constants of C's `math.h`; see their manual pages. An argument outside a \
            function's domain results in NaN. Since Varnish 9.0.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const X: &[Parameter] = &[required_parameter("x", Type::Real)];
const X_Y: &[Parameter] =
    &[required_parameter("x", Type::Real), required_parameter("y", Type::Real)];
const Y_X: &[Parameter] =
    &[required_parameter("y", Type::Real), required_parameter("x", Type::Real)];

/// A function of `math.h`.
const fn function(
    name: &'static str,
    about: &'static str,
    returns: Type,
    params: &'static [Parameter],
    call: Call,
) -> Function {
    Function { name, about, returns, params, from: Subs::ALL, call }
}

/// A function from one or two REALs to a REAL, by its name in the manual and in `libm`.
macro_rules! real {
    ($name:ident of x) => {
        function(
            stringify!($name),
            concat!("The C library's ", stringify!($name), "(3)."),
            Type::Real,
            X,
            |_, args| Ok(Value::Real(libm::$name(real(args, 0)))),
        )
    };
    ($name:ident of $params:ident) => {
        function(
            stringify!($name),
            concat!("The C library's ", stringify!($name), "(3)."),
            Type::Real,
            $params,
            |_, args| Ok(Value::Real(libm::$name(real(args, 0), real(args, 1)))),
        )
    };
}

/// A function to an INT that is 1 or 0.
macro_rules! holds {
    ($name:literal, $params:ident, $test:expr) => {
        function($name, concat!($name, "(3): 1 or 0."), Type::Int, $params, |_, args| {
            let test: fn(f64, f64) -> bool = $test;
            Ok(Value::Int(test(real(args, 0), real(args, 1)).into()))
        })
    };
}

const FUNCTIONS: &[Function] = &[
    function(
        "approx",
        "Whether two numbers are nearly equal: they differ by at most `maxDiff`, or by \
         `maxRelDiff` of the larger one. 0 means four times (`maxDiff`) and once (`maxRelDiff`) \
         the smallest step from 1.",
        Type::Bool,
        &[
            required_parameter("a", Type::Real),
            required_parameter("b", Type::Real),
            number("maxDiff", Type::Real, 0.0),
            number("maxRelDiff", Type::Real, 0.0),
        ],
        |_, args| {
            let [a, b, most, share] = [0, 1, 2, 3].map(|at| real(args, at));
            Ok(Value::Bool(is_near(a, b, most, share)))
        },
    ),
    function(
        "strfromd",
        "Formats a number as strfromd(3) does: `%`, an optional point and digits, and one of \
         `aAeEfFgG`. Fails for other formats.",
        Type::String,
        &[required_parameter("format", Type::String), required_parameter("fp", Type::Real)],
        strfromd,
    ),
    Function {
        name: "constant",
        about: "A constant of `math.h` or `float.h`.",
        returns: Type::Real,
        params: &[one_of("name", CONSTANT_NAMES)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Real(constant(args.enum_value(0).unwrap_or_default()))),
    },
    Function {
        name: "fpclass",
        about: "The value that `math.fpclassify` returns for this class.",
        returns: Type::Int,
        params: &[one_of("name", CLASS_NAMES)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Int(class_named(args.enum_value(0).unwrap_or_default()))),
    },
    function(
        "fpclassify",
        "fpclassify(3): one of the values of `math.fpclass`.",
        Type::Int,
        X,
        |_, args| Ok(Value::Int(class_of(real(args, 0)))),
    ),
    holds!("isfinite", X, |x, _| x.is_finite()),
    holds!("isgreater", X_Y, |x, y| x > y),
    holds!("isgreaterequal", X_Y, |x, y| x >= y),
    function("isinf", "isinf(3): 1, -1 or 0.", Type::Int, X, |_, args| {
        let x = real(args, 0);
        Ok(Value::Int(if x.is_infinite() { x.signum() as i64 } else { 0 }))
    }),
    holds!("isless", X_Y, |x, y| x < y),
    holds!("islessequal", X_Y, |x, y| x <= y),
    holds!("islessgreater", X_Y, |x, y| x.partial_cmp(&y).is_some_and(|order| order.is_ne())),
    holds!("isnan", X, |x, _| x.is_nan()),
    holds!("isnormal", X, |x, _| x.is_normal()),
    holds!("isunordered", X_Y, |x, y| x.is_nan() || y.is_nan()),
    holds!("signbit", X, |x, _| x.is_sign_negative()),
    real!(acos of x),
    real!(acosh of x),
    real!(asin of x),
    real!(asinh of x),
    real!(atan of x),
    real!(atan2 of Y_X),
    real!(atanh of x),
    real!(cbrt of x),
    real!(ceil of x),
    real!(copysign of X_Y),
    real!(cos of x),
    real!(cosh of x),
    real!(erf of x),
    real!(erfc of x),
    real!(exp of x),
    real!(exp2 of x),
    real!(expm1 of x),
    real!(fabs of x),
    real!(fdim of X_Y),
    real!(floor of x),
    function(
        "fma",
        "The C library's fma(3).",
        Type::Real,
        &[
            required_parameter("x", Type::Real),
            required_parameter("y", Type::Real),
            required_parameter("z", Type::Real),
        ],
        |_, args| Ok(Value::Real(libm::fma(real(args, 0), real(args, 1), real(args, 2)))),
    ),
    real!(fmax of X_Y),
    real!(fmin of X_Y),
    real!(fmod of X_Y),
    real!(hypot of X_Y),
    function("ilogb", "The C library's ilogb(3).", Type::Int, X, |_, args| {
        Ok(Value::Int(libm::ilogb(real(args, 0)).into()))
    }),
    real!(j0 of x),
    real!(j1 of x),
    function(
        "jn",
        "The C library's jn(3).",
        Type::Real,
        &[required_parameter("x", Type::Int), required_parameter("y", Type::Real)],
        |_, args| Ok(Value::Real(libm::jn(order(args), real(args, 1)))),
    ),
    function("ldexp", "The C library's ldexp(3).", Type::Real, X_E, scaled),
    real!(lgamma of x),
    real!(log of x),
    real!(log10 of x),
    real!(log1p of x),
    real!(log2 of x),
    function("logb", "The C library's logb(3).", Type::Real, X, |_, args| {
        Ok(Value::Real(exponent(real(args, 0))))
    }),
    function(
        "lrint",
        "lrint(3). Fails if the result does not fit an INT.",
        Type::Int,
        X,
        |_, args| whole("lrint", libm::rint(real(args, 0))),
    ),
    function(
        "lround",
        "lround(3). Fails if the result does not fit an INT.",
        Type::Int,
        X,
        |_, args| whole("lround", libm::round(real(args, 0))),
    ),
    function(
        "nan",
        "The C library's nan(3).",
        Type::Real,
        &[required_parameter("tag", Type::String)],
        |_, _| Ok(Value::Real(f64::NAN)),
    ),
    function("nearbyint", "The C library's nearbyint(3).", Type::Real, X, |_, args| {
        Ok(Value::Real(libm::rint(real(args, 0))))
    }),
    real!(nextafter of X_Y),
    real!(pow of X_Y),
    real!(remainder of X_Y),
    real!(rint of x),
    real!(round of x),
    function("scalbln", "The C library's scalbln(3).", Type::Real, X_E, scaled),
    function("scalbn", "The C library's scalbn(3).", Type::Real, X_N, scaled),
    real!(sin of x),
    real!(sinh of x),
    real!(sqrt of x),
    real!(tan of x),
    real!(tanh of x),
    real!(tgamma of x),
    real!(trunc of x),
    real!(y0 of x),
    real!(y1 of x),
    function(
        "yn",
        "The C library's yn(3).",
        Type::Real,
        &[required_parameter("n", Type::Int), required_parameter("x", Type::Real)],
        |_, args| Ok(Value::Real(libm::yn(order(args), real(args, 1)))),
    ),
];

const X_E: &[Parameter] =
    &[required_parameter("x", Type::Real), required_parameter("e", Type::Int)];
const X_N: &[Parameter] =
    &[required_parameter("x", Type::Real), required_parameter("y", Type::Int)];

/// A required parameter with one of these values.
const fn one_of(name: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter { name, kind: ArgumentType::Enum(words), default: None }
}

const CONSTANT_NAMES: &[&str] = &[
    "DBL_MANT_DIG",
    "DBL_DIG",
    "DBL_MIN_EXP",
    "DBL_MIN_10_EXP",
    "DBL_MAX_EXP",
    "DBL_MAX_10_EXP",
    "DBL_MAX",
    "DBL_EPSILON",
    "DBL_MIN",
    "HUGE_VAL",
    "M_E",
    "M_LOG2E",
    "M_LOG10E",
    "M_LN2",
    "M_LN10",
    "M_PI",
    "M_PI_2",
    "M_PI_4",
    "M_1_PI",
    "M_2_PI",
    "M_2_SQRTPI",
    "M_SQRT2",
    "M_SQRT1_2",
];

/// The value of a constant, by its name.
fn constant(name: &str) -> f64 {
    use ::std::f64::consts;
    match name {
        "DBL_MANT_DIG" => f64::from(f64::MANTISSA_DIGITS),
        "DBL_DIG" => f64::from(f64::DIGITS),
        "DBL_MIN_EXP" => f64::from(f64::MIN_EXP),
        "DBL_MIN_10_EXP" => f64::from(f64::MIN_10_EXP),
        "DBL_MAX_EXP" => f64::from(f64::MAX_EXP),
        "DBL_MAX_10_EXP" => f64::from(f64::MAX_10_EXP),
        "DBL_MAX" => f64::MAX,
        "DBL_EPSILON" => f64::EPSILON,
        "DBL_MIN" => f64::MIN_POSITIVE,
        "HUGE_VAL" => f64::INFINITY,
        "M_E" => consts::E,
        "M_LOG2E" => consts::LOG2_E,
        "M_LOG10E" => consts::LOG10_E,
        "M_LN2" => consts::LN_2,
        "M_LN10" => consts::LN_10,
        "M_PI" => consts::PI,
        "M_PI_2" => consts::FRAC_PI_2,
        "M_PI_4" => consts::FRAC_PI_4,
        "M_1_PI" => consts::FRAC_1_PI,
        "M_2_PI" => consts::FRAC_2_PI,
        "M_2_SQRTPI" => consts::FRAC_2_SQRT_PI,
        "M_SQRT2" => consts::SQRT_2,
        _ => consts::FRAC_1_SQRT_2,
    }
}

const CLASS_NAMES: &[&str] = &["FP_INFINITE", "FP_NAN", "FP_NORMAL", "FP_SUBNORMAL", "FP_ZERO"];

/// Number of a floating-point class in the GNU C library.
fn class_named(name: &str) -> i64 {
    match name {
        "FP_NAN" => 0,
        "FP_INFINITE" => 1,
        "FP_ZERO" => 2,
        "FP_SUBNORMAL" => 3,
        _ => 4,
    }
}

fn class_of(x: f64) -> i64 {
    use ::std::num::FpCategory;
    class_named(match x.classify() {
        FpCategory::Nan => "FP_NAN",
        FpCategory::Infinite => "FP_INFINITE",
        FpCategory::Zero => "FP_ZERO",
        FpCategory::Subnormal => "FP_SUBNORMAL",
        FpCategory::Normal => "FP_NORMAL",
    })
}

fn real(args: &[Value], at: usize) -> f64 {
    args.real(at).unwrap_or_default()
}

/// The order of a Bessel function.
fn order(args: &[Value]) -> i32 {
    int32(args.int(0).unwrap_or_default())
}

fn int32(n: i64) -> i32 {
    n.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// `x * 2^e`
fn scaled(_: &mut crate::state::ctx::Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(Value::Real(libm::scalbn(real(args, 0), int32(args.int(1).unwrap_or_default()))))
}

/// The exponent of `x` as a number.
fn exponent(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        x if x.is_nan() => x,
        x if x.is_infinite() => f64::INFINITY,
        x => libm::ilogb(x).into(),
    }
}

fn whole(name: &str, x: f64) -> Result<Value, ProgramFailure> {
    // Both bounds are powers of two.
    match x.abs() < 9_223_372_036_854_775_808.0 {
        true => Ok(Value::Int(x as i64)),
        false => Err(ProgramFailure::new(format!("math.{name}: no INT can hold this"))),
    }
}

/// Bruce Dawson's comparison ("Comparing Floating Point Numbers, 2012 Edition").
fn is_near(a: f64, b: f64, most: f64, share: f64) -> bool {
    let most = if most == 0.0 { 4.0 * f64::EPSILON } else { most };
    let share = if share == 0.0 { f64::EPSILON } else { share };
    let apart = (a - b).abs();
    apart <= most || apart <= a.abs().max(b.abs()) * share
}

fn strfromd(_: &mut crate::state::ctx::Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let format = args.bytes(0);
    format::write(format, real(args, 1)).map(owned).ok_or_else(|| {
        let shown = String::from_utf8_lossy(format);
        ProgramFailure::new(format!("math.strfromd(\"{shown}\", ...): Invalid format"))
    })
}

#[cfg(test)]
mod tests {
    use crate::sub::Sub;
    use crate::testing::SubroutineFixture;

    /// The value of `expression` as a header.
    fn eval(expression: &str) -> String {
        let text = format!(
            "vcl 4.1; import math; backend default none; \
             sub vcl_deliver {{ set resp.http.r = {expression}; }}"
        );
        let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|e| panic!("{e}"));
        fixture.run(Sub::Deliver);
        String::from_utf8_lossy(fixture.resp.headers.value_named(b"r").unwrap_or(b"-")).into_owned()
    }

    #[test]
    fn functions_are_those_of_the_manual() {
        for (expression, expected) in [
            ("math.sqrt(2.0)", "1.414"),
            ("math.pow(2.0, 10.0)", "1024.000"),
            ("math.atan2(1.0, -1.0)", "2.356"),
            ("math.jn(2, 1.0)", "0.115"),
            ("math.ldexp(1.5, 4)", "24.000"),
            ("math.logb(10.0)", "3.000"),
            ("math.ilogb(10.0)", "3"),
            ("math.lround(-2.5)", "-3"),
            ("math.lrint(2.5)", "2"),
            ("math.remainder(5.0, 3.0)", "-1.000"),
            ("math.constant(M_PI)", "3.142"),
            ("math.isnan(math.nan(\"\"))", "1"),
            ("math.isinf(math.log(0.0))", "-1"),
            ("math.isgreater(2.0, 1.0)", "1"),
            ("math.approx(0.1 + 0.2, 0.3)", "true"),
            ("math.approx(0.1, 0.2, 0.05)", "false"),
            ("math.strfromd(\"%.2e\", 12345.678)", "1.23e+04"),
            ("math.strfromd(\"%d\", 1.0)", "-"),
            ("math.sqrt(-1.0)", "-"),
        ] {
            assert_eq!(eval(expression), expected, "{expression}");
        }
        assert_eq!(eval("math.fpclassify(0.0)"), eval("math.fpclass(FP_ZERO)"));
    }
}
