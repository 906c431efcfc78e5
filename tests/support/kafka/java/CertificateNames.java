import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * The principals of certificates, as DefaultKafkaPrincipalBuilder derives them. Each line of the input is a subject's
 * DER in hexadecimal, and the mapping rules in hexadecimal; each line of the output is the name and the principal, in
 * hexadecimal UTF-8, or REJECTED.
 */
public class CertificateNames {
    public static void main(String[] arguments) throws Exception {
        BufferedReader given = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = given.readLine(); line != null; line = given.readLine()) {
            String[] parts = line.split(" ");
            byte[] der = HexFormat.of().parseHex(parts[0]);
            String rules = new String(HexFormat.of().parseHex(parts[1]), StandardCharsets.UTF_8);
            System.out.println(name(der, rules));
        }
    }

    private static String name(byte[] der, String rules) {
        String name;
        try {
            name = new X500Principal(der).getName();
        } catch (RuntimeException error) {
            return "REJECTED";
        }
        try {
            return hex(name) + " " + hex(SslPrincipalMapper.fromRules(rules).getName(name));
        } catch (Exception error) {
            return hex(name) + " REJECTED";
        }
    }

    private static String hex(String text) {
        return "=" + HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
