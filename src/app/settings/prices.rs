//! Prices of usage.

use clap::Args;

use sparkgate_access::is_price;
use sparkgate_service::{Price, PriceSettings};

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Prices")]
pub(in crate::app) struct Prices {
    /// Price of one core for one hour, such as 0.04: usage has a cost then (docs/use/usage.md). Tenants of the access file may have
    /// prices of their own.
    #[arg(long, env = "SPARKGATE_PRICE_PER_CORE_HOUR", value_name = "PRICE", value_parser = price)]
    price_per_core_hour: Option<String>,
    /// Price of one GiB of memory for one hour, such as 0.005. With only one of the prices, the other is 0.
    #[arg(long, env = "SPARKGATE_PRICE_PER_GIB_HOUR", value_name = "PRICE", value_parser = price)]
    price_per_gib_hour: Option<String>,
    /// Currency of all prices, such as EUR. It is only printed.
    #[arg(long, env = "SPARKGATE_PRICE_CURRENCY", value_name = "CODE", value_parser = currency)]
    price_currency: Option<String>,
}

impl Prices {
    /// Returns the prices. A price that isn't given is 0, unless none is.
    pub(in crate::app) fn settings(&self) -> PriceSettings {
        let given = |price: &Option<String>| price.clone().unwrap_or_else(|| "0".to_owned());
        let is_given = self.price_per_core_hour.is_some() || self.price_per_gib_hour.is_some();
        let price = is_given
            .then(|| Price { core_hour: given(&self.price_per_core_hour), gib_hour: given(&self.price_per_gib_hour) });
        PriceSettings { price, currency: self.price_currency.clone() }
    }
}

fn price(text: &str) -> Result<String, &'static str> {
    is_price(text).then(|| text.to_owned()).ok_or("a price is a decimal number such as 0.04")
}

fn currency(text: &str) -> Result<String, &'static str> {
    let is_code = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then(|| text.to_owned()).ok_or("a currency is a code such as EUR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_decimal_numbers() {
        for good in ["0", "0.04", "12", "999999999.999999999"] {
            assert_eq!(price(good), Ok(good.to_owned()));
        }
        for bad in ["", "-1", "1e3", ".5", "1.", "1,5", "0.0.1", "1000000000", "0x1", "٣", "EUR"] {
            assert!(price(bad).is_err(), "{bad}");
        }
        assert!(currency("EUR").is_ok() && currency("=A1").is_err() && currency("").is_err());
    }

    #[test]
    fn one_price_makes_the_other_zero() {
        assert_eq!(Prices::default().settings().price, None);
        let one = Prices { price_per_gib_hour: Some("0.5".to_owned()), ..Prices::default() };
        assert_eq!(one.settings().price, Some(Price { core_hour: "0".to_owned(), gib_hour: "0.5".to_owned() }));
    }
}
