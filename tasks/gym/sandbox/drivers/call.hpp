// Prints what a function returns as one line of JSON, and names the types of its parameters.
#pragma once
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace call {

template <class F> struct parameters;
template <class R, class... A> struct parameters<R (*)(A...)> {
    using types = std::tuple<std::decay_t<A>...>;
};
template <class R, class O, class... A> struct parameters<R (O::*)(A...)> : parameters<R (*)(A...)> {};
template <class R, class O, class... A>
struct parameters<R (O::*)(A...) const> : parameters<R (*)(A...)> {};
template <class F, std::size_t N>
using parameter = std::tuple_element_t<N, typename parameters<F>::types>;

using Out = std::ostringstream;

template <class T> void write(Out& out, const T& value);

inline void quote(Out& out, const std::string& text) {
    out << '"';
    for (unsigned char c : text) {
        char escaped[8];
        if (c < ' ' || c == '"' || c == '\\') {
            std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
            out << escaped;
        } else {
            out << c;
        }
    }
    out << '"';
}

template <class T> struct is_pair : std::false_type {};
template <class A, class B> struct is_pair<std::pair<A, B>> : std::true_type {};
template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};
template <class T> struct is_map : std::false_type {};
template <class... T> struct is_map<std::map<T...>> : std::true_type {};
template <class... T> struct is_map<std::unordered_map<T...>> : std::true_type {};

template <class K> std::string key(const K& value) {
    if constexpr (std::is_convertible_v<K, std::string>) {
        return value;
    } else {
        Out out;
        write(out, value);
        return out.str();
    }
}

template <class T> void write(Out& out, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        out << (value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        quote(out, std::string(1, value));
    } else if constexpr (std::is_integral_v<T>) {
        out << +value;
    } else if constexpr (std::is_floating_point_v<T>) {
        char digits[64];
        std::snprintf(digits, sizeof digits, "%.17g", static_cast<double>(value));
        std::string text = digits;
        bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
        if (value != value) text = "NaN";
        if (text.find("inf") != std::string::npos) text = value < 0 ? "-Infinity" : "Infinity";
        out << text << (whole ? ".0" : "");
    } else if constexpr (std::is_convertible_v<T, std::string>) {
        quote(out, value);
    } else if constexpr (is_optional<T>::value) {
        if (value) write(out, *value); else out << "null";
    } else if constexpr (is_pair<T>::value) {
        out << '['; write(out, value.first); out << ','; write(out, value.second); out << ']';
    } else if constexpr (is_map<T>::value) {
        const char* comma = "{";
        for (const auto& item : value) {
            out << comma;
            quote(out, key(item.first));
            out << ':';
            write(out, item.second);
            comma = ",";
        }
        out << (value.empty() ? "{}" : "}");
    } else {
        const char* comma = "[";
        for (const auto& item : value) {
            out << comma;
            write(out, static_cast<const typename T::value_type&>(item));
            comma = ",";
        }
        out << (value.begin() == value.end() ? "[]" : "]");
    }
}

template <class T> void print(const T& value) {
    Out out;
    write(out, value);
    std::cout.flush();
    std::fflush(stdout);
    std::string line = "\n" + out.str() + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

}  // namespace call
