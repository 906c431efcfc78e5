import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Scanner;
import java.util.function.Supplier;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * What Kafka's own ClientQuotaManager gives to clients that do not wait, in simulated time. It has its default
 * samples: 11 of a second.
 *
 * <p>Arguments: the quota in bytes per second, the seconds to simulate, and the milliseconds between two moments at
 * which clients act. Each line of the input is an attack:
 *
 * <pre>
 *   stay SIZE CONNECTIONS        connections that stay, and send a request of SIZE whenever the broker reads from them
 *   come_and_go SIZE CONNECTIONS so many connections at each moment, each with one request, which then hang up
 *   keep_opening SIZE EVERY      a new connection with one request every so many milliseconds
 *   fetch SIZE                   a consumer that waits as it is told, of batches of SIZE
 * </pre>
 *
 * <p>Prints for each the bytes that pass. As in KafkaApis, a Produce request is appended, then recorded, and its
 * connection muted for the whole throttle time. A Fetch response over the quota is unrecorded, and goes out empty.
 */
public class ClientQuotas {
    private static final String CLIENT = "client";

    public static void main(String[] arguments) throws Exception {
        double limit = Double.parseDouble(arguments[0]);
        long end = Long.parseLong(arguments[1]) * 1000;
        long tick = Long.parseLong(arguments[2]);
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] words = input.nextLine().split(" ");
            int size = Integer.parseInt(words[1]);
            int number = words.length > 2 ? Integer.parseInt(words[2]) : 1;
            Broker broker = new Broker(words[0].equals("fetch") ? QuotaType.FETCH : QuotaType.PRODUCE, limit);
            long passed = switch (words[0]) {
                case "stay" -> broker.stay(size, number, end, tick);
                case "come_and_go" -> broker.comeAndGo(size, number, end, tick);
                case "keep_opening" -> broker.comeAndGo(size, 1, end, number);
                case "fetch" -> broker.fetch(size, end, tick);
                default -> throw new IllegalArgumentException(words[0]);
            };
            System.out.println(passed);
            broker.close();
        }
    }

    private static class Broker {
        private final Clock clock = new Clock();
        private final Metrics metrics = new Metrics(clock);
        private final ClientQuotaManager quotas;
        private final Session session;

        Broker(QuotaType type, double limit) throws Exception {
            quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(), metrics, type, clock, "");
            quotas.updateQuota(
                Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.empty(),
                Optional.of(Quota.upperBound(limit)));
            session = new Session(new KafkaPrincipal("User", "alice"), InetAddress.getLoopbackAddress());
        }

        void close() {
            quotas.shutdown();
            metrics.close();
        }

        private int record(int size) {
            return quotas.maybeRecordAndGetThrottleTimeMs(session, CLIENT, size, clock.now);
        }

        long stay(int size, int connections, long end, long tick) {
            long[] muted = new long[connections];
            long passed = 0;
            for (long at = 0; at < end; at += tick) {
                clock.now = Clock.START + at;
                for (int place = 0; place < connections; place++) {
                    if (muted[place] > at) {
                        continue;
                    }
                    passed += size;
                    muted[place] = at + record(size);
                }
            }
            return passed;
        }

        long comeAndGo(int size, int connections, long end, long tick) {
            long passed = 0;
            for (long at = 0; at < end; at += tick) {
                clock.now = Clock.START + at;
                for (int place = 0; place < connections; place++) {
                    record(size);
                    passed += size;
                }
            }
            return passed;
        }

        long fetch(int size, long end, long tick) {
            long muted = 0;
            long passed = 0;
            for (long at = 0; at < end; at += tick) {
                if (muted > at) {
                    continue;
                }
                clock.now = Clock.START + at;
                int throttle = record(size);
                if (throttle > 0) {
                    quotas.unrecordQuotaSensor(session, CLIENT, size, clock.now);
                    muted = at + throttle;
                } else {
                    passed += size;
                }
            }
            return passed;
        }
    }

    /** A clock that stands still between two moments. */
    private static class Clock implements Time {
        static final long START = 1_000_000;
        long now = START;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long milliseconds) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }
}
