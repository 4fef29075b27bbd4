import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.StringWriter;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.spark.deploy.k8s.KubernetesConf;
import org.apache.spark.internal.config.ConfigEntry;
import scala.Option;

/** Applies single rules of Spark and Java to texts. */
final class Vectors {
    private Vectors() {}

    /** {@code keys} are Spark's registered entries; any other operation maps each of {@code inputs}. */
    static JsonNode answer(ObjectMapper json, JsonNode request) throws Exception {
        String op = request.get("op").asText();
        if (op.equals("keys")) {
            return keys(json);
        }
        ArrayNode answers = json.createArrayNode();
        for (JsonNode input : request.get("inputs")) {
            answers.add(rule(op, input.asText()));
        }
        return answers;
    }

    /** Returns the result for one text, or null if the rule refuses it. */
    private static String rule(String op, String input) throws Exception {
        try {
            switch (op) {
                case "escapeKey":
                    return stored(input, "");
                case "escapeValue":
                    return stored("k", input);
                case "prefix":
                    return KubernetesConf.getResourceNamePrefix(input);
                case "label":
                    return KubernetesConf.getAppNameLabel(input);
                case "mebibytes":
                    return read("spark.driver.memoryOverhead", input);
                case "quantity":
                    return new io.fabric8.kubernetes.api.model.Quantity(input).toString();
                case "double":
                    return read("spark.kubernetes.memoryOverheadFactor", input);
                default:
                    throw new IllegalStateException("no operation " + op);
            }
        } catch (IllegalArgumentException | ArithmeticException refused) {
            return null;
        }
    }

    /** Returns a value as its entry reads and checks it. */
    private static String read(String key, String input) throws Exception {
        load();
        Object value = ConfigEntry.findEntry(key).valueConverter().apply(input);
        return String.valueOf(value instanceof Option ? ((Option<?>) value).get() : value);
    }

    /** Loads the objects that register the entries. */
    private static void load() throws Exception {
        for (String config : new String[] {"org.apache.spark.deploy.k8s.Config$", "org.apache.spark.internal.config.package$"}) {
            Class.forName(config);
        }
    }

    /** Returns the line that {@code Properties.store} writes after the date. */
    private static String stored(String key, String value) throws Exception {
        Properties properties = new Properties();
        properties.setProperty(key, value);
        StringWriter text = new StringWriter();
        properties.store(text, "");
        String[] lines = text.toString().split("\n", 3);
        return lines[2].substring(0, lines[2].length() - 1);
    }

    private static JsonNode keys(ObjectMapper json) throws Exception {
        load();
        Class<?> module = Class.forName("org.apache.spark.internal.config.ConfigEntry$");
        Collection<?> entries;
        try {
            entries = (Collection<?>) ConfigEntry.class.getMethod("listAllEntries").invoke(null);
        } catch (NoSuchMethodException older) {
            Field known = module.getDeclaredField("knownConfigs");
            known.setAccessible(true);
            entries = ((Map<?, ?>) known.get(module.getField("MODULE$").get(null))).values();
        }
        Map<String, ObjectNode> sorted = new TreeMap<>();
        for (Object each : entries) {
            ConfigEntry<?> entry = (ConfigEntry<?>) each;
            sorted.put(entry.key(), json.createObjectNode().put("default", entry.defaultValueString()).put("since", entry.version()));
        }
        return json.valueToTree(sorted);
    }
}
