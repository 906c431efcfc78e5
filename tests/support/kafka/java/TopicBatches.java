import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;

/**
 * Java's AdminClient on batches of topics: creates them without retries, then what is missing with retries (the
 * default), and deletes all. Prints for each step what came of it: `STEP done failed seconds`, and for the first
 * failure `FAILURE class throttle_ms message`.
 *
 * <p>Arguments: bootstrap, client id, prefix of the topics' names, how many.
 */
public class TopicBatches {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("client.id", arguments[1]);
        List<String> names =
            IntStream.range(0, Integer.parseInt(arguments[3])).mapToObj(n -> arguments[2] + n).toList();
        try (Admin admin = Admin.create(properties)) {
            CreateTopicsOptions once = new CreateTopicsOptions().retryOnQuotaViolation(false);
            List<String> missing = step("once", create(admin, names, once));
            step("create", create(admin, missing, new CreateTopicsOptions()));
            step("delete", admin.deleteTopics(names, new DeleteTopicsOptions()).topicNameValues());
        }
    }

    private static Map<String, KafkaFuture<Void>> create(
            Admin admin, List<String> names, CreateTopicsOptions options) {
        List<NewTopic> topics = names.stream().map(name -> new NewTopic(name, 1, (short) 1)).toList();
        return admin.createTopics(topics, options).values();
    }

    /** The topics that failed. */
    private static List<String> step(String name, Map<String, KafkaFuture<Void>> futures) throws Exception {
        long started = System.nanoTime();
        List<String> failed = new ArrayList<>();
        for (Map.Entry<String, KafkaFuture<Void>> entry : futures.entrySet()) {
            try {
                entry.getValue().get();
            } catch (ExecutionException error) {
                Throwable cause = error.getCause();
                if (failed.isEmpty()) {
                    int throttle = cause instanceof ThrottlingQuotaExceededException exceeded
                        ? exceeded.throttleTimeMs() : -1;
                    System.out.println(
                        "FAILURE " + cause.getClass().getSimpleName() + " " + throttle + " " + cause.getMessage());
                }
                failed.add(entry.getKey());
            }
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        System.out.println(name + " " + (futures.size() - failed.size()) + " " + failed.size() + " " + seconds);
        return failed;
    }
}
