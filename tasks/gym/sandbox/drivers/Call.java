// Reads one call as JSON, finds the function in the program's classes, calls it, prints the value.
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

final class Harness {
    private final String text;
    private int at = 0;

    private Harness(String text) {
        this.text = text;
    }

    public static void main(String[] names) throws Throwable {
        String given = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        Map<?, ?> call = (Map<?, ?>) new Harness(given).value();
        List<?> args = (List<?>) call.get("args");
        for (Object name : (List<?>) call.get("classes")) {
            Class<?> owner = Class.forName((String) name);
            for (Method method : owner.getDeclaredMethods()) {
                if (!method.getName().equals(call.get("function"))
                        || method.getParameterCount() != args.size()) {
                    continue;
                }
                Type[] types = method.getGenericParameterTypes();
                Object[] values = new Object[types.length];
                for (int i = 0; i < types.length; i++) {
                    values[i] = convert(args.get(i), types[i]);
                }
                print(invoke(owner, method, values));
                return;
            }
        }
        throw new NoSuchMethodException((String) call.get("function"));
    }

    private static Object invoke(Class<?> owner, Method method, Object[] values) throws Throwable {
        method.setAccessible(true);
        Object self = null;
        if (!java.lang.reflect.Modifier.isStatic(method.getModifiers())) {
            Constructor<?> constructor = owner.getDeclaredConstructor();
            constructor.setAccessible(true);
            self = constructor.newInstance();
        }
        try {
            return method.invoke(self, values);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    private static void print(Object value) {
        StringBuilder out = new StringBuilder("\n");
        write(value, out);
        byte[] bytes = out.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        System.out.flush();
        System.out.write(bytes, 0, bytes.length);
        System.out.flush();
    }

    private static Object convert(Object value, Type type) {
        if (type instanceof ParameterizedType generic) {
            Type[] inner = generic.getActualTypeArguments();
            Class<?> raw = (Class<?>) generic.getRawType();
            if (Map.class.isAssignableFrom(raw)) {
                Map<Object, Object> map = new HashMap<>();
                ((Map<?, ?>) value).forEach(
                        (key, item) -> map.put(key(key, inner[0]), convert(item, inner[1])));
                return map;
            }
            Collection<Object> all = raw == Set.class ? new HashSet<>() : new ArrayList<>();
            ((List<?>) value).forEach(item -> all.add(convert(item, inner[0])));
            return raw == Optional.class ? Optional.ofNullable(value) : all;
        }
        Class<?> wanted = (Class<?>) type;
        if (wanted.isArray()) {
            List<?> items = (List<?>) value;
            Object array = Array.newInstance(wanted.getComponentType(), items.size());
            for (int i = 0; i < items.size(); i++) {
                Array.set(array, i, convert(items.get(i), wanted.getComponentType()));
            }
            return array;
        }
        if (wanted == char.class || wanted == Character.class) {
            return ((String) value).charAt(0);
        }
        return value instanceof Number number ? number(number, wanted) : value;
    }

    private static Object key(Object key, Type type) {
        return type == Integer.class ? Integer.valueOf((String) key)
                : type == Long.class ? (Object) Long.valueOf((String) key) : key;
    }

    private static Object number(Number value, Class<?> wanted) {
        if (wanted == int.class || wanted == Integer.class) {
            return Math.toIntExact(value.longValue());
        }
        if (wanted == long.class || wanted == Long.class) {
            return value.longValue();
        }
        if (wanted == float.class || wanted == Float.class) {
            return value.floatValue();
        }
        return wanted == double.class || wanted == Double.class ? value.doubleValue() : value;
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof String || value instanceof Character) {
            quote(value.toString(), out);
        } else if (value instanceof Optional<?> optional) {
            write(optional.orElse(null), out);
        } else if (value instanceof Collection<?> items) {
            list(items.toArray(), out);
        } else if (value instanceof Map<?, ?> map) {
            String comma = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(comma);
                quote(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                comma = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value != null && value.getClass().isArray()) {
            Object[] items = new Object[Array.getLength(value)];
            for (int i = 0; i < items.length; i++) {
                items[i] = Array.get(value, i);
            }
            list(items, out);
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(value.getClass().getName(), out);
        }
    }

    private static void list(Object[] items, StringBuilder out) {
        out.append('[');
        for (int i = 0; i < items.length; i++) {
            out.append(i == 0 ? "" : ",");
            write(items[i], out);
        }
        out.append(']');
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (char c : text.toCharArray()) {
            if (c < ' ' || c == '"' || c == '\\' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    // JSON as the caller writes it: no white space, nothing but ASCII.
    private Object value() {
        char c = text.charAt(at);
        switch (c) {
            case '{': {
                Map<String, Object> map = new LinkedHashMap<>();
                while (text.charAt(at++) != '}' && text.charAt(at) != '}') {
                    String key = (String) value();
                    at++;
                    map.put(key, value());
                }
                at += map.isEmpty() ? 1 : 0;
                return map;
            }
            case '[': {
                List<Object> list = new ArrayList<>();
                while (text.charAt(at++) != ']' && text.charAt(at) != ']') {
                    list.add(value());
                }
                at += list.isEmpty() ? 1 : 0;
                return list;
            }
            case '"':
                return string();
            default: {
                int start = at;
                while (at < text.length() && ",]}".indexOf(text.charAt(at)) < 0) {
                    at++;
                }
                return word(text.substring(start, at));
            }
        }
    }

    private static Object word(String word) {
        switch (word) {
            case "null":
                return null;
            case "true":
            case "false":
                return word.equals("true");
            default:
                return word.matches("-?\\d+") ? (Object) Long.valueOf(word) : Double.valueOf(word);
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            if (text.charAt(at) != '\\') {
                out.append(text.charAt(at));
                continue;
            }
            char c = text.charAt(++at);
            if (c == 'u') {
                out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                at += 4;
            } else {
                int known = "nrtbf".indexOf(c);
                out.append(known < 0 ? c : "\n\r\t\b\f".charAt(known));
            }
        }
        at++;
        return out.toString();
    }
}
