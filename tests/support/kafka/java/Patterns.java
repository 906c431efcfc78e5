import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * The programs that RE2/J makes of patterns. Each line of the input is a pattern in hexadecimal UTF-8; each line of the
 * output is the number of instructions of its program, or REJECTED.
 */
public class Patterns {
    public static void main(String[] arguments) throws Exception {
        BufferedReader given = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = given.readLine(); line != null; line = given.readLine()) {
            String pattern = new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8);
            try {
                System.out.println(instructions(Pattern.compile(pattern)));
            } catch (PatternSyntaxException error) {
                System.out.println("REJECTED");
            }
        }
    }

    private static Object instructions(Pattern pattern) throws ReflectiveOperationException {
        Object program = field(field(pattern, "re2"), "prog");
        Method count = program.getClass().getDeclaredMethod("numInst");
        count.setAccessible(true);
        return count.invoke(program);
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }
}
