//! Where an agent's model is, and where its key may be. It names variables and files, and knows
//! nothing of any value that is a secret.

use std::path::PathBuf;

/// How a variable becomes an absolute path.
pub type PathVariable<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// The service that an agent talks to.
#[derive(Debug)]
pub struct Service {
    /// The variable that sets another address, and the usual address.
    pub set_by: &'static str,
    pub usual: &'static str,
    /// If one of these is set, the agent talks to another service, which crew does not know.
    pub elsewhere: &'static [&'static str],
    /// Variables that hold a key.
    pub keys: &'static [&'static str],
    /// The file that a login leaves.
    pub login: fn(PathVariable<'_>) -> Option<PathBuf>,
}

/// Host and port of what is connected to for a URL: its own, or those of a proxy that the variables
/// set. `None` for what is not a URL of http or https.
pub fn route(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, u16)> {
    let (scheme, host, port) = endpoint(url)?;
    let set = |name: &str| variable(name).or_else(|| variable(&name.to_uppercase()));
    let excepted = set("no_proxy").unwrap_or_default();
    let is_excepted = excepted.split(',').map(str::trim).any(|name| {
        let above = name.trim_start_matches(['*', '.']);
        name == "*" || host == above || (!above.is_empty() && host.ends_with(&format!(".{above}")))
    });
    let proxy = set(&format!("{scheme}_proxy")).filter(|_| !is_excepted);
    let Some(proxy) = proxy else { return Some((host, port)) };
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    endpoint(&proxy).map(|(_, host, port)| (host, port))
}

fn endpoint(url: &str) -> Option<(&str, String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // The colons of an IPv6 address stand in brackets.
    let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (place, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (scheme, host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL, the variables that are set, and where the way leads.
    type Way = (&'static str, &'static [(&'static str, &'static str)], Option<(&'static str, u16)>);

    #[test]
    fn the_way_to_a_service_is_its_own_address_or_that_of_a_proxy() {
        let proxy: &[(&str, &str)] = &[("HTTPS_PROXY", "http://me:secret@proxy.site:3128/")];
        let excepting: &[(&str, &str)] =
            &[("https_proxy", "proxy.site:3128"), ("NO_PROXY", "localhost, .example.org")];
        let table: [Way; 12] = [
            ("https://api.example.com", &[], Some(("api.example.com", 443))),
            ("http://api.example.com/v1?x=1", &[], Some(("api.example.com", 80))),
            ("https://user:word@api.example.com:8443/", &[], Some(("api.example.com", 8443))),
            ("http://[::1]:4000/v1", &[], Some(("::1", 4000))),
            ("http://[::1]", &[], Some(("::1", 80))),
            ("https://api.example.com", proxy, Some(("proxy.site", 3128))),
            ("http://api.example.com", proxy, Some(("api.example.com", 80))),
            ("https://api.example.com", excepting, Some(("proxy.site", 3128))),
            ("https://api.example.org", excepting, Some(("api.example.org", 443))),
            ("https://", &[], None),
            ("https://api.example.com:many", &[], None),
            ("api.example.com", &[], None),
        ];
        for (url, set, expected) in table {
            let variable = |name: &str| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            };
            let found = route(url, &variable);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected, "{url} {set:?}");
        }
    }
}
