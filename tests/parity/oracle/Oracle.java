import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.deploy.SparkSubmit;

/**
 * The real spark-submit in a warm JVM: reads one JSON request per line, and writes one JSON answer per line.
 *
 * A submission runs in this JVM through the same two steps as bin/spark-submit: the launcher's command builder, then
 * {@code SparkSubmit.doSubmit}. Its Kubernetes API is the server below, which accepts every request and records it.
 * The changes of a submission (files, variables, system properties, Hadoop's login) are undone before the next one.
 * It must be started in an empty directory of its own, which serves as the submitter's.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int DEADLINE_SECONDS = 60;
    private static final Path HERE = Path.of("").toAbsolutePath();
    private static final ArrayNode CALLS = JSON.createArrayNode();

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        HttpServer api = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        api.setExecutor(Executors.newCachedThreadPool());
        api.createContext("/", Oracle::answerCall);
        api.start();
        answers.println(JSON.createObjectNode().put("port", api.getAddress().getPort()));

        ExecutorService worker = Executors.newSingleThreadExecutor();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            JsonNode request = JSON.readTree(line);
            JsonNode answer;
            try {
                answer = worker.submit(() -> answer(request)).get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            } catch (TimeoutException hangs) {
                // Its thread can't be stopped: the caller starts a new JVM.
                answers.println(JSON.createObjectNode().put("timeout", DEADLINE_SECONDS));
                break;
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    private static JsonNode answer(JsonNode request) throws Exception {
        switch (request.get("op").asText()) {
            case "submit":
                return submit(request);
            case "calls":
                return takeCalls();
            default:
                return Vectors.answer(JSON, request);
        }
    }

    /** One run of spark-submit; {@code calls} are the requests to the API server, {@code error} is the reason for an early end. */
    private static JsonNode submit(JsonNode request) throws Exception {
        Properties properties = (Properties) System.getProperties().clone();
        Map<String, String> environment = new TreeMap<>(System.getenv());
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        ObjectNode answer = JSON.createObjectNode();
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        try {
            write(request.path("files"));
            request.path("env").properties().forEach(v -> variables().put(v.getKey(), v.getValue().asText()));
            forgetHadoop();
            // bin/spark-submit puts these two directories first on the class path.
            URL[] classPath = {HERE.resolve("conf").toUri().toURL(), HERE.resolve("hadoop").toUri().toURL()};
            Thread.currentThread().setContextClassLoader(new URLClassLoader(classPath, loader));
            org.apache.spark.deploy.SparkSubmit$.MODULE$.printStream_$eq(new PrintStream(said, true, "UTF-8"));
            List<String> args = new ArrayList<>();
            request.get("args").forEach(arg -> args.add(arg.asText()));
            new SparkSubmit().doSubmit(launched(args).toArray(new String[0]));
        } catch (Throwable thrown) {
            ArrayNode chain = answer.putArray("error");
            for (Throwable cause = thrown; cause != null && chain.size() < 5; cause = cause.getCause()) {
                chain.addObject().put("class", cause.getClass().getName()).put("message", cause.getMessage());
            }
        } finally {
            Thread.currentThread().setContextClassLoader(loader);
            System.setProperties(properties);
            variables().clear();
            variables().putAll(environment);
            clear();
        }
        answer.put("said", said.toString(StandardCharsets.UTF_8));
        answer.set("calls", takeCalls());
        return answer;
    }

    /**
     * Does what bin/spark-class does first: the launcher reads the arguments too, refuses some by itself, and passes the
     * others to SparkSubmit in its own form.
     */
    @SuppressWarnings("unchecked")
    private static List<String> launched(List<String> args) throws Throwable {
        Class<?> builder = Class.forName("org.apache.spark.launcher.SparkSubmitCommandBuilder");
        Constructor<?> of = builder.getDeclaredConstructor(List.class);
        of.setAccessible(true);
        Method build = builder.getDeclaredMethod("buildCommand", Map.class);
        build.setAccessible(true);
        try {
            List<String> command = (List<String>) build.invoke(of.newInstance(args), new TreeMap<>(System.getenv()));
            return command.subList(command.indexOf("org.apache.spark.deploy.SparkSubmit") + 1, command.size());
        } catch (java.lang.reflect.InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    /** Resets the first configuration and login, which Hadoop caches; a new process would start without them. */
    private static void forgetHadoop() throws Exception {
        org.apache.hadoop.security.UserGroupInformation.reset();
        org.apache.hadoop.fs.FileSystem.closeAll();
        Class<?> spark = Class.forName("org.apache.spark.deploy.SparkHadoopUtil$");
        Field once = spark.getDeclaredField("bitmap$0");
        once.setAccessible(true);
        Object module = spark.getField("MODULE$").get(null);
        if (once.getType() == byte.class) {
            once.setByte(module, (byte) 0);
        } else {
            once.setBoolean(module, false);
        }
    }

    /** Returns the map behind {@code System.getenv()}: a JVM can't change its own environment in another way. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> variables() {
        try {
            Field backing = System.getenv().getClass().getDeclaredField("m");
            backing.setAccessible(true);
            return (Map<String, String>) backing.get(System.getenv());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("start with --add-opens=java.base/java.util=ALL-UNNAMED", e);
        }
    }

    /** Writes files by path; a text that begins with `base64:` represents bytes that are not UTF-8. */
    private static void write(JsonNode files) throws IOException {
        Files.createDirectories(HERE.resolve("conf"));
        Files.createDirectories(HERE.resolve("hadoop"));
        for (Map.Entry<String, JsonNode> file : files.properties()) {
            Path path = HERE.resolve(file.getKey());
            Files.createDirectories(path.getParent());
            String text = file.getValue().asText();
            Files.write(path, text.startsWith("base64:")
                ? Base64.getDecoder().decode(text.substring("base64:".length())) : text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static void clear() throws IOException {
        try (var paths = Files.walk(HERE)) {
            for (Path path : (Iterable<Path>) paths.sorted(Comparator.reverseOrder()).filter(p -> !p.equals(HERE))::iterator) {
                Files.delete(path);
            }
        }
    }

    private static synchronized ArrayNode takeCalls() {
        ArrayNode calls = CALLS.deepCopy();
        CALLS.removeAll();
        return calls;
    }

    private static void answerCall(HttpExchange call) throws IOException {
        byte[] sent = call.getRequestBody().readAllBytes();
        JsonNode body = sent.length == 0 ? JSON.nullNode() : JSON.readTree(sent);
        String method = call.getRequestMethod();
        synchronized (Oracle.class) {
            CALLS.addObject().put("method", method).put("path", call.getRequestURI().toString()).set("body", body);
        }
        ObjectNode answer;
        int status = 200;
        if (body.isObject() && (method.equals("POST") || method.equals("PATCH") || method.equals("PUT"))) {
            answer = body.deepCopy();
            answer.withObject("/metadata").put("uid", "uid-1");
            status = method.equals("POST") ? 201 : 200;
        } else {
            status = method.equals("DELETE") ? 200 : 404;
            answer = JSON.createObjectNode().put("kind", "Status").put("apiVersion", "v1").put("code", status);
            answer.put("status", status == 200 ? "Success" : "Failure").put("reason", status == 200 ? "" : "NotFound");
        }
        byte[] bytes = JSON.writeValueAsBytes(answer);
        call.getResponseHeaders().add("content-type", "application/json");
        call.sendResponseHeaders(status, bytes.length);
        call.getResponseBody().write(bytes);
        call.close();
    }
}
