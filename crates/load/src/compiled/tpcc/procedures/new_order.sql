CREATE OR REPLACE PROCEDURE tpcc_new_order(
    p_w_id int, p_d_id int, p_c_id int, p_numbers int[], p_i_ids int[], p_supply_w_ids int[], p_quantities int[],
    INOUT p_o_id int, INOUT p_c_last text, INOUT p_c_credit text, INOUT p_c_discount numeric, INOUT p_w_tax numeric,
    INOUT p_d_tax numeric, INOUT p_total numeric
) LANGUAGE plpgsql AS $$
DECLARE
    v_item record;
    v_stock record;
    v_quantity int;
    v_amount numeric;
BEGIN
    SELECT c_last, c_credit, c_discount, w_tax INTO STRICT p_c_last, p_c_credit, p_c_discount, p_w_tax
        FROM customer JOIN warehouse ON w_id = c_w_id WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w_id AND d_id = p_d_id
        RETURNING d_next_o_id - 1, d_tax INTO STRICT p_o_id, p_d_tax;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local, o_entry_d)
        VALUES (p_w_id, p_d_id, p_o_id, p_c_id, NULL, cardinality(p_i_ids),
            CASE WHEN p_w_id = ALL (p_supply_w_ids) THEN 1 ELSE 0 END, localtimestamp);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w_id, p_d_id, p_o_id);
    p_total := 0;
    FOR n IN 1 .. cardinality(p_i_ids) LOOP
        SELECT i_price, i_name, i_data INTO v_item FROM item WHERE i_id = p_i_ids[n];
        IF NOT found THEN
            ROLLBACK;
            p_o_id := 0;
            RETURN;
        END IF;
        v_quantity := p_quantities[n];
        UPDATE stock SET s_quantity = s_quantity - v_quantity + CASE WHEN s_quantity >= v_quantity + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN p_supply_w_ids[n] = p_w_id THEN 0 ELSE 1 END
            WHERE s_w_id = p_supply_w_ids[n] AND s_i_id = p_i_ids[n]
            RETURNING CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS dist_info, s_quantity, s_data INTO STRICT v_stock;
        v_amount := v_quantity * v_item.i_price;
        p_total := p_total + v_amount;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
            ol_amount, ol_dist_info)
            VALUES (p_w_id, p_d_id, p_o_id, p_numbers[n], p_i_ids[n], p_supply_w_ids[n], NULL, v_quantity, v_amount,
                v_stock.dist_info);
    END LOOP;
    p_total := p_total * (1 - p_c_discount) * (1 + p_w_tax + p_d_tax);
END $$
