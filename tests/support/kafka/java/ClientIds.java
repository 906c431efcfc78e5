import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * The client ids of requests, as Kafka counts them. Each line of the input is a request header in hexadecimal; each
 * line of the output is the client id whose quota applies, in hexadecimal UTF-8, or REJECTED.
 */
public class ClientIds {
    public static void main(String[] arguments) throws Exception {
        BufferedReader given = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Metrics metrics = new Metrics();
        ClientQuotaManager quotas =
            new ClientQuotaManager(new ClientQuotaManagerConfig(), metrics, QuotaType.PRODUCE, Time.SYSTEM, "");
        quotas.updateQuota(
            Optional.empty(), Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
            Optional.of(Quota.upperBound(1000)));
        Session session = new Session(new KafkaPrincipal("User", "alice"), InetAddress.getLoopbackAddress());
        for (String line = given.readLine(); line != null; line = given.readLine()) {
            System.out.println(counted(metrics, quotas, session, HexFormat.of().parseHex(line)));
        }
        quotas.shutdown();
        metrics.close();
    }

    private static String counted(Metrics metrics, ClientQuotaManager quotas, Session session, byte[] header) {
        String clientId;
        try {
            clientId = RequestHeader.parse(ByteBuffer.wrap(header)).clientId();
        } catch (RuntimeException error) {
            return "REJECTED";
        }
        quotas.maybeRecordAndGetThrottleTimeMs(session, clientId, 1, Time.SYSTEM.milliseconds());
        Map<String, String> tags = Map.of("user", "", "client-id", clientId);
        if (!clientId.isEmpty() && metrics.metric(metrics.metricName("byte-rate", "Produce", "", tags)) == null) {
            throw new IllegalStateException("Kafka counts this client id under another name");
        }
        return HexFormat.of().formatHex(clientId.getBytes(StandardCharsets.UTF_8));
    }
}
